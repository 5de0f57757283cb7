"""The syntax of allow and deny rules: the first words of a simple command, or a tool and a host."""

from collections.abc import Iterable

_SUBCOMMANDS = frozenset(
    ("git", "gh", "npm", "pnpm", "yarn", "pip", "pip3", "cargo", "gem", "apt", "apt-get", "dnf", "brew", "systemctl")
)
# These run any program named after them; a rule of two words would allow everything.
_RUNNERS = frozenset(("run", "exec", "x", "dlx", "run-script", "alias"))
_REDIRECTIONS = ("<", ">", "&>")
# Programs that can do anything their arguments say: a rule for them would be broader than it looks.
_TOO_BROAD = frozenset(
    """
    bash sh dash zsh fish ksh busybox toybox python python2 python3 pypy3 node deno bun ruby perl php lua awk gawk mawk
    sed osascript env sudo doas su nice ionice timeout nohup setsid stdbuf xargs parallel command builtin exec eval
    time watch find chroot unshare nsenter bwrap strace gdb ssh scp rsync script expect tmux screen
    rm rmdir shred dd mkfs wipefs fdisk parted mv chmod chown chattr kill pkill killall
    npx pnpx uvx pipx docker podman kubectl make crontab at batch systemctl curl wget nc ncat socat
    """.split()  # noqa: SIM905 (a hundred quoted words would hide the list)
)


def covers_command(rule: str, command: str) -> bool:
    """Whether a command starts with the words of an allow rule and has no redirection beyond them."""
    wanted, words = rule.split(), command.split()
    if not wanted or words[: len(wanted)] != wanted:
        return False
    return not any(word.startswith(_REDIRECTIONS) for word in words[len(wanted) :])


def covers_host(rule: str, fetch: str) -> bool:
    """Whether a rule such as `fetch_page .example.org` covers `fetch_page docs.example.org`; no host means all."""
    tool, _, host = fetch.partition(" ")
    wanted, *hosts = rule.split() or [""]
    if wanted != tool or len(hosts) > 1:
        return False
    return not hosts or host == hosts[0].removeprefix(".") or (hosts[0].startswith(".") and host.endswith(hosts[0]))


def is_command_prefix(rule: str, command: str) -> bool:
    """Whether a command starts with the words of a deny rule, whatever follows."""
    wanted = rule.split()
    return bool(wanted) and command.split()[: len(wanted)] == wanted


def rule_for(command: str) -> str:
    """Return the narrowest useful rule that allows a canonical command."""
    words = command.split()
    has_subcommand = len(words) > 1 and not words[1].startswith("-") and words[1] not in _RUNNERS
    if has_subcommand and words[0] in _SUBCOMMANDS and covers_command(" ".join(words[:2]), command):
        return " ".join(words[:2])
    return " ".join(words)


def suggest_rules(commands: Iterable[str]) -> tuple[str, ...]:
    """Return rules that would allow these commands, or none if a rule for one of them would be too broad."""
    rules: dict[str, None] = {}
    for command in commands:
        words = command.split()
        program = words[0].rpartition("/")[2] if words else ""
        is_runner = len(words) > 1 and words[1] in _RUNNERS
        if not program or program in _TOO_BROAD or is_runner or not program.isprintable():
            return ()
        rules[rule_for(command)] = None
    return tuple(rules)
