"""Tables of programs that run other programs, and of their options."""

from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """How to find the inner command: options with a value, flags, and positional words before it."""

    value_options: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    positional_count: int = 0
    has_assignments: bool = False
    after: tuple[str, ...] = ()


def _wrapper(values: str = "", flags: str = "", *, skips: int = 0, assigns: bool = False, after: str = "") -> Wrapper:
    return Wrapper(
        value_options=frozenset(values.split()),
        flags=frozenset(flags.split()),
        positional_count=skips,
        has_assignments=assigns,
        after=tuple(after.split()),
    )


XARGS = _wrapper(
    "-I -n -P -L -d -a -E -s -i -l --max-args --max-procs --max-lines --arg-file --delimiter --replace",
    "-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive",
)
_RUNNER = "--with --python --group --extra --env-file --project --directory -p -C -e --env --index"
WRAPPERS: dict[str, Wrapper] = {
    "env": _wrapper("-u -C --unset --chdir", "-i - -0 -v --ignore-environment", assigns=True),
    "sudo": _wrapper("-u -g -h -p -C -D -r -t -U -T -R", "-n -E -H -S -k -b -A -i -s -P", assigns=True),
    "doas": _wrapper("-u -C -a", "-n -s -L", assigns=True),
    "nice": _wrapper("-n --adjustment"),
    "ionice": _wrapper("-c -n -p -P -u --class --classdata", "-t"),
    "chrt": _wrapper("-p -T -P -D", "-b -f -i -o -r -a -v", skips=1),
    "timeout": _wrapper("-s -k --signal --kill-after", "--foreground --preserve-status -v --verbose", skips=1),
    "gtimeout": _wrapper("-s -k --signal --kill-after", "--foreground --preserve-status", skips=1),
    "stdbuf": _wrapper("-i -o -e --input --output --error"),
    "unbuffer": _wrapper("", "-p"),
    "nohup": _wrapper(),
    "setsid": _wrapper("", "-c -f -w --fork --wait --ctty"),
    "command": _wrapper("", "-p"),
    "builtin": _wrapper(),
    "exec": _wrapper("-a", "-c -l -cl"),
    "time": _wrapper("-f -o --format --output", "-p -v -l -a -q --verbose --portability"),
    "gtime": _wrapper("-f -o --format --output", "-p -v -a -q"),
    "coproc": _wrapper(),
    "busybox": _wrapper(),
    "toybox": _wrapper(),
    "chronic": _wrapper("", "-v -e"),
    "ifne": _wrapper("", "-n"),
    "errno": _wrapper(),
    "fakeroot": _wrapper("-l -s -i -b", "-u"),
    "gosu": _wrapper(skips=1),
    "su-exec": _wrapper(skips=1),
    "tini": _wrapper("-p -e", "-s -g -v -w"),
    "dumb-init": _wrapper("-r", "-c -v"),
    "caffeinate": _wrapper("-t -w", "-d -i -m -s -u"),
    "arch": _wrapper("-e", "-x86_64 -arm64"),
    "setarch": _wrapper("", "-R -v", skips=1),
    "linux32": _wrapper(),
    "linux64": _wrapper(),
    "taskset": _wrapper("", "-a -c -p", skips=1),
    "numactl": _wrapper("-N -m -C -i -p", ""),
    "cpulimit": _wrapper("-l -p -e -c", "-z -i -v"),
    "prlimit": _wrapper("-p -o"),
    "unshare": _wrapper("-S -G -R -w --root --wd", "-r -m -u -i -n -p -U -C -T -f --fork --mount-proc"),
    "nsenter": _wrapper("-t -S -G --target", "-a -m -u -i -n -p -U -C -T -F -r -w"),
    "chroot": _wrapper("", "", skips=1),
    "setpriv": _wrapper("--reuid --regid --groups --inh-caps --bounding-set", "--clear-groups --no-new-privs"),
    "bwrap": _wrapper(
        "--bind --ro-bind --dev-bind --tmpfs --proc --dev --dir --setenv --chdir --uid --gid", "--unshare-all"
    ),
    "firejail": _wrapper("", ""),
    "systemd-run": _wrapper("-p -u --unit --property -M -H --slice", "--user --scope -t -P --wait -q --pty"),
    "systemd-inhibit": _wrapper("", ""),
    "pkexec": _wrapper("--user"),
    "strace": _wrapper("-e -o -p -s -u -E -a -P -X -O -S -I -b", "-f -ff -c -C -t -tt -r -T -v -q -y -yy -i -k -n -x"),
    "ltrace": _wrapper("-e -o -p -s -u -a -l -n -F -A -D", "-f -c -C -t -tt -r -T -S -i -L"),
    "valgrind": _wrapper("", "-v -q"),
    "entr": _wrapper("", "-c -r -d -n -p -s -z -a -cr -rc"),
    "xvfb-run": _wrapper("-e -f -n -p -s -w --server-args --server-num --error-file", "-a -l --auto-servernum"),
    "dbus-run-session": _wrapper("--config-file --dbus-daemon"),
    "cross-env": _wrapper(assigns=True),
    "cross-env-shell": _wrapper(assigns=True),
    "dotenv": _wrapper("-e -f -c"),
    "faketime": _wrapper("-f", "-m", skips=1),
    "rlwrap": _wrapper("-H -D -f -l -s", "-a -c -i -r"),
    "proxychains": _wrapper("-f", "-q"),
    "proxychains4": _wrapper("-f", "-q"),
    "torsocks": _wrapper("-a -P -u -p", "-i -q"),
    "flock": _wrapper("-w -E --timeout", "-n -s -x -u -o -e --nonblock --exclusive --shared", skips=1),
    "run-one": _wrapper(),
    "catchsegv": _wrapper(),
    "npx": _wrapper("-p --package", "-y --yes -q --quiet --no-install --no --prefer-offline"),
    "bunx": _wrapper("", "--bun -y"),
    "uvx": _wrapper(_RUNNER + " --from", "-q --quiet --isolated"),
}
# Wrappers that are subcommands.
SUBCOMMAND_WRAPPERS: dict[tuple[str, str], Wrapper] = {
    ("uv", "run"): _wrapper(
        _RUNNER + " --with-requirements --with-editable --package",
        "-q -v --frozen --locked --no-sync --isolated --active --no-project --all-extras --dev --no-dev --offline -s",
    ),
    ("poetry", "run"): _wrapper("-C -P"),
    ("pipenv", "run"): _wrapper(),
    ("pdm", "run"): _wrapper("-p", "-s -v"),
    ("rye", "run"): _wrapper("-p"),
    ("hatch", "run"): _wrapper(),
    ("conda", "run"): _wrapper("-n -p --name --prefix --cwd", "-v --no-capture-output --live-stream"),
    ("mamba", "run"): _wrapper("-n -p --name --prefix --cwd"),
    ("micromamba", "run"): _wrapper("-n -p"),
    ("bundle", "exec"): _wrapper(),
    ("npm", "exec"): _wrapper("-p --package -w --workspace", "-y --yes"),
    ("npm", "x"): _wrapper("-p --package -w", "-y --yes"),
    ("pnpm", "exec"): _wrapper("", "-r --recursive --parallel"),
    ("pnpm", "dlx"): _wrapper("--package"),
    ("yarn", "dlx"): _wrapper("-p --package", "-q"),
    ("yarn", "exec"): _wrapper(),
    ("bun", "x"): _wrapper("", "--bun"),
    ("direnv", "exec"): _wrapper(skips=1),
    ("mise", "exec"): _wrapper("-C", "-q"),
    ("mise", "x"): _wrapper("-C", "-q"),
    ("asdf", "exec"): _wrapper(),
    ("rbenv", "exec"): _wrapper(),
    ("pyenv", "exec"): _wrapper(),
    ("perf", "stat"): _wrapper("-e -r -o -p -a -x", "-d -v"),
    ("perf", "record"): _wrapper("-e -F -o -p -c", "-g -a"),
    ("git", "bisect run"): _wrapper(),
    ("coverage", "run"): _wrapper("--source --include --omit --rcfile -m --data-file", "-a -p --branch --append"),
    ("doppler", "run"): _wrapper("-p -c --project --config"),
    ("op", "run"): _wrapper("--env-file"),
    ("cargo", "watch"): _wrapper("-x -w -i -d -s -C", "-c -q"),
}
# These run programs of the project.
PROJECT_RUNNERS = frozenset({"npx", "bunx", "uvx", *(program for program, _ in SUBCOMMAND_WRAPPERS)}) - {"git", "perf"}
# Options whose value is shell text.
SHELL_TEXT_OPTIONS: dict[str, tuple[str, ...]] = {
    "script": ("-c", "--command"),
    "flock": ("-c", "--command"),
    "su": ("-c", "--command", "--session-command"),
    "runuser": ("-c", "--command"),
    "sg": ("-c",),
    "npx": ("-c", "--call"),
    "npm": ("-c", "--call"),
    "env": ("-S", "--split-string"),
    "nix-shell": ("--run", "--command"),
    "tar": ("--to-command", "-I", "--use-compress-program", "--rsh-command", "-F", "--info-script"),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "sort": ("--compress-program",),
    "split": ("--filter",),
    "man": ("-P", "--pager"),
    "zip": ("-TT", "--unzip-command"),
    "rg": ("--pre",),
    "fzf": ("--preview",),
    "nodemon": ("--exec", "-x"),
    "git": ("--exec", "-x", "--upload-pack", "--receive-pack", "--extcmd"),
    "ssh": ("-o",),
    "xterm": ("-e",),
    "cargo": ("-s",),
    "entr": ("-s",),
    "capsh": ("-c",),
    "complete": ("-C",),
    "compgen": ("-C",),
    "mapfile": ("-C",),
    "bind": ("-x",),
    "make": ("--eval",),
    "tmux": ("-c",),
}
# Programs that pass all their plain words to a shell.
SHELL_TEXT_WRAPPERS: dict[str, Wrapper] = {
    "watch": _wrapper("-n --interval -q", "-d -t -b -e -g -c -x --color --differences --no-title"),
    "hyperfine": _wrapper("-w -r -m -M -p -c -s -n -L -P --warmup --runs --prepare --cleanup", "-N -i"),
    "concurrently": _wrapper("-n -c --names", "-k -r"),
    "watchexec": _wrapper("-w -e -i -f -s", "-r -c -q"),
    "parallel": _wrapper(
        "-j -P -n -N -a --jobs --colsep --results --joblog", "-k --bar --dry-run -0 -X -m --will-cite"
    ),
    "sem": _wrapper("-j --id", "--fg"),
}
