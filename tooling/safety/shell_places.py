"""Places outside a workspace that everyday commands may look at, and those where they may write."""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/snap", "/home/linuxbrew")
SCRATCH = ("/tmp", "/var/tmp", "/private/tmp", "/dev/shm")
DEVICES = frozenset(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty", "fd")
)
_TOOLCHAINS = """
    .cargo/bin .cargo/env .cargo/registry .rustup .nvm .pyenv .rbenv .rvm .nodenv .sdkman .local/bin
    .local/lib .bun .deno .local/share/uv .local/share/pnpm .local/share/mise .volta .asdf .fnm .goenv .jenv
    .ghcup .cabal/bin .opam .dotnet .yarn/bin go/bin go/pkg bin .m2/repository .gradle/caches .cache/pip
    .cache/uv .npm/_cacache miniconda3 anaconda3 .linuxbrew .juliaup .elan .moon .proto
"""
TOOLCHAINS = tuple(f"~/{name}" for name in _TOOLCHAINS.split())
_FACTS = """
    /etc/os-release /etc/debian_version /etc/alpine-release /etc/redhat-release /etc/lsb-release /etc/issue
    /etc/timezone /etc/localtime /etc/shells /etc/mime.types /etc/hostname /proc/cpuinfo /proc/meminfo
    /proc/version /proc/loadavg /proc/uptime /proc/stat /proc/filesystems /proc/sys/kernel/osrelease
    /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max
"""
FACTS = frozenset(_FACTS.split())
