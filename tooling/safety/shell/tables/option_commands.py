"""Tables of options and variables whose value is a command that the program runs."""

from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import is_unknown

# Options whose value is shell text, by program, or by program and subcommand.
SHELL_TEXT_OPTIONS: dict[str, tuple[str, ...]] = {
    key: tuple(options.split())
    for key, options in {
        "script": "-c --command",
        "flock": "-c --command",
        "su": "-c --command --session-command",
        "runuser": "-c --command",
        "sg": "-c",
        "npx": "-c --call",
        "npm": "-c --call",
        "env": "-S --split-string",
        "nix-shell": "--run --command",
        "tar": "--to-command -I --use-compress-program --rsh-command -F --info-script --new-volume-script",
        "gtar": "--to-command -I --use-compress-program --rsh-command -F --info-script --new-volume-script",
        "bsdtar": "--use-compress-program",
        "cpio": "--rsh-command",
        "rsync": "-e --rsh --rsync-path",
        "sort": "--compress-program",
        "split": "--filter",
        "man": "-P --pager -H --html",
        "zip": "-TT --unzip-command",
        "rg": "--pre --hostname-bin",
        "ag": "--pager",
        "ack": "--pager",
        "bat": "--pager",
        "batcat": "--pager",
        "delta": "--pager",
        "fzf": "--preview --listen",
        "nodemon": "--exec -x",
        "git rebase": "--exec -x",
        "git difftool": "-x --extcmd",
        "git clone": "-u --upload-pack",
        "git fetch": "--upload-pack",
        "git pull": "--upload-pack",
        "git ls-remote": "--upload-pack --exec",
        "git fetch-pack": "--upload-pack --exec",
        "git push": "--receive-pack --exec",
        "git send-pack": "--receive-pack --exec",
        "git archive": "--exec",
        "git grep": "--open-files-in-pager",
        "git filter-branch": "--tree-filter --index-filter --msg-filter --env-filter --commit-filter --parent-filter"
        " --tag-name-filter --setup",
        "git web--browse": "-b --browser",
        "svn": "--editor-cmd --diff-cmd --diff3-cmd",
        "ssh": "-o",
        "scp": "-S -o",
        "sftp": "-S -o",
        "cargo watch": "-s --shell",
        "entr": "-s",
        "capsh": "-c",
        "complete": "-C",
        "compgen": "-C",
        "mapfile": "-C",
        "readarray": "-C",
        "bind": "-x",
        "make": "--eval",
        "tmux": "-c",
        "go test": "-exec --exec -toolexec --toolexec -vettool",
        "go run": "-exec --exec -toolexec --toolexec",
        "go build": "-toolexec --toolexec",
        "go vet": "-vettool --vettool -toolexec",
        "go install": "-toolexec --toolexec",
        "go list": "-toolexec --toolexec",
        "go generate": "-toolexec",
        "bazel": "--run_under",
        "meson test": "--wrapper --wrap",
        "ctest": "--launch-command",
        "java": "-XX:OnError -XX:OnOutOfMemoryError",
        "pip config": "--editor",
        "gem open": "-e --editor",
        "install": "--strip-program",
        "dmsetup": "--exec",
        "diff3": "--diff-program",
        "sdiff": "--diff-program",
        "nano": "-s --speller",
        "latexmk": "-pdflatex -latex",
        "asciinema": "-c --command",
        "termtosvg": "-c --command",
        "ttyrec": "-e",
        "watchman-make": "--run",
        "watchmedo": "-c --command",
        "chokidar": "-c --command",
        "when-changed": "-c",
        "ptw": "--onpass --onfail --beforerun --afterrun --runner",
        "pytest-watch": "--onpass --onfail --beforerun --afterrun --runner",
        "tsc-watch": "--onSuccess --onFailure --onFirstSuccess --onCompilationComplete",
        "tsup": "--onSuccess",
        "hyperfine": "-p --prepare -c --cleanup --setup --conclude -s",
        "air": "-build.cmd --build.cmd -build.bin --build.bin -build.full_bin --build.full_bin",
        "fish": "-C --init-command",
        "mosh": "--ssh --server",
        "pandoc": "--pdf-engine -F --filter",
        "wget": "--use-askpass",
    }.items()
}
# Options after which the remaining words are a program and its arguments.
ARGV_OPTIONS: dict[str, tuple[str, ...]] = {
    "pidstat": ("-e",),
    "nix": ("-c", "--command"),
    "nix-shell": ("--",),
    "guix": ("--",),
    "xterm": ("-e",),
    "ptw": ("--",),
    "vtune": ("--",),
    "start-stop-daemon": ("--exec", "-x", "--startas", "-a"),
    "dtach": ("-c", "-n", "-A"),
    "abduco": ("-c", "-n"),
    "ttyd": ("--",),
}
# Variables whose value is a command line that another program runs.
_COMMAND_VARIABLES = frozenset(
    """
    PAGER GIT_PAGER MANPAGER SYSTEMD_PAGER AWS_PAGER BAT_PAGER DELTA_PAGER PSQL_PAGER MYSQL_PAGER GH_PAGER CRASHPAGER
    EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR SUDO_EDITOR SYSTEMD_EDITOR HGEDITOR SVN_EDITOR FCEDIT PSQL_EDITOR
    KUBE_EDITOR GH_EDITOR BUNDLER_EDITOR GEM_EDITOR CSCOPE_EDITOR HGMERGE GH_BROWSER MANLESS
    """.split()  # noqa: SIM905 (a list that is read as words)
)
_COMMAND_NAME = lazy_pattern(
    r"(?i:(?:\w+_)?(?:CMD|COMMAND|EXEC|HOOK|RUNNER|WRAPPER|LAUNCHER|HELPER|PAGER|EDITOR|BROWSER|ASKPASS|PREPROCESSOR))"
)


def names_command(name: str, value: str) -> bool:
    """Return whether a variable holds a command, by its known name or a telling one, and the value looks like one."""
    if name in _COMMAND_VARIABLES:
        return True
    return " " in value and not is_unknown(value) and _COMMAND_NAME.fullmatch(name) is not None
