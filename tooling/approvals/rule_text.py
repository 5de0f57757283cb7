"""The syntax of allow and deny rules: the first words of a simple command, or a tool and a host."""

import shlex
from collections.abc import Iterable

from tooling.safety.shell.command import quote_word

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
    words = command.split()
    covered = _covered_count(rule, words)
    return covered > 0 and not any(word.startswith(_REDIRECTIONS) for word in words[covered:])


def covers_host(rule: str, fetch: str) -> bool:
    """Whether a rule such as `fetch_page .example.org` covers `fetch_page docs.example.org`; no host means all."""
    tool, _, host = fetch.partition(" ")
    wanted, *hosts = rule.split() or [""]
    if wanted != tool or len(hosts) > 1:
        return False
    return not hosts or host == hosts[0].removeprefix(".") or (hosts[0].startswith(".") and host.endswith(hosts[0]))


def is_command_prefix(rule: str, command: str) -> bool:
    """Whether a command starts with the words of a deny rule, whatever follows."""
    return _covered_count(rule, command.split()) > 0


def _covered_count(rule: str, words: list[str]) -> int:
    """Return how many words of a command a rule covers; 0 if it does not match.

    A rule may be written as the judge shows commands, or with a folder before the program and other quotes.
    """
    for wanted in (rule.split(), _canonical_words(rule)):
        if wanted and words[: len(wanted)] == wanted:
            return len(wanted)
    return 0


def _canonical_words(rule: str) -> list[str]:
    try:
        words = shlex.split(rule)
    except ValueError:
        # An apostrophe that closes nothing.
        words = rule.split()
    program = words[0].rpartition("/")[2] if words else ""
    return " ".join(map(quote_word, (program, *words[1:]))).split()


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
