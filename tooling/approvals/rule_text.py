"""The syntax of allow and deny rules: the first words of a simple command, or a tool and a host.

A rule for a command that runs a file of the workspace can start with the digest of that file:
`sha256:0123… ./build.sh --release`. It only applies while the file has this content.
"""

from collections.abc import Iterable, Mapping

_SUBCOMMANDS = frozenset(
    ("git", "gh", "npm", "pnpm", "yarn", "pip", "pip3", "cargo", "gem", "apt", "apt-get", "dnf", "brew", "systemctl")
)
# These run any program named after them; a rule of two words would allow everything.
_RUNNERS = frozenset(("run", "exec", "x", "dlx", "run-script", "alias"))
DIGEST_PREFIX = "sha256:"
_REDIRECTIONS = ("<", ">", "&>")
# Programs that can do anything, depending on their arguments: a rule for them would be broader than it looks.
_TOO_BROAD = frozenset(
    """
    bash sh dash zsh fish ksh busybox toybox python python2 python3 pypy3 node deno bun ruby perl php lua awk gawk mawk
    sed osascript env sudo doas su nice ionice timeout nohup setsid stdbuf xargs parallel command builtin exec eval
    time watch find chroot unshare nsenter bwrap strace gdb ssh scp rsync script expect tmux screen
    rm rmdir shred dd mkfs wipefs fdisk parted mv chmod chown chattr kill pkill killall
    npx pnpx uvx pipx docker podman kubectl make crontab at batch systemctl curl wget nc ncat socat
    """.split()  # noqa: SIM905 (a hundred quoted words would hide the list)
)


def covers_command(rule: str, command: str, digest: str = "") -> bool:
    """Whether a command starts with the words of an allow rule, and the rest of it runs or writes nothing else.

    Redirections and options that run or write something else must be part of the rule. `digest` is that of the files
    the command runs.
    """
    bound, rule = split_digest(rule)
    if bound and bound != digest:
        return False
    words = command.split()
    covered = _covered_count(rule, words)
    if covered == 0 or any(word.startswith(_REDIRECTIONS) for word in words[covered:]):
        return False
    import shlex

    from tooling.approvals.rule_options import runs_or_writes_elsewhere

    try:
        start, rest = shlex.split(" ".join(words[:covered])), shlex.split(" ".join(words[covered:]))
    except ValueError:
        # The rule ends in the middle of a word.
        return False
    return not runs_or_writes_elsewhere((*start, *rest), len(start))


def split_digest(rule: str) -> tuple[str, str]:
    """Return the digest at the start of a rule, or an empty string, and its words."""
    first, _, rest = rule.partition(" ")
    return (first, rest.strip()) if first.startswith(DIGEST_PREFIX) else ("", rule)


def covers_tool(rule: str, tool: str) -> bool:
    """Whether a rule names a tool, or as `mcp__SERVER` all tools of a server."""
    return rule == tool or (rule.startswith("mcp__") and tool.startswith(f"{rule}__"))


def covers_host(rule: str, fetch: str) -> bool:
    """Whether a rule such as `fetch_page .example.org` covers `fetch_page docs.example.org`; no host means all."""
    tool, _, host = fetch.partition(" ")
    wanted, *hosts = rule.split() or [""]
    if wanted != tool or len(hosts) > 1:
        return False
    return not hosts or host == hosts[0].removeprefix(".") or (hosts[0].startswith(".") and host.endswith(hosts[0]))


def is_command_prefix(rule: str, command: str) -> bool:
    """Whether a command starts with the words of a deny rule, regardless of the rest and of its folder."""
    from tooling.safety.shell.command import program_name

    _, rule = split_digest(rule)
    words = command.split()
    return _covered_count(rule, words) > 0 or _covered_count(rule, [program_name(words), *words[1:]]) > 0


def _covered_count(rule: str, words: list[str]) -> int:
    """Return how many words of a command a rule covers; 0 if it does not match.

    A rule may be written as the judge shows commands, or with a standard folder before the program and other quotes.
    """
    for wanted in (rule.split(), _canonical_words(rule)):
        if wanted and words[: len(wanted)] == wanted:
            return len(wanted)
    return 0


def _canonical_words(rule: str) -> list[str]:
    import shlex

    from tooling.safety.shell.command import program_identity, quote_word

    try:
        words = shlex.split(rule)
    except ValueError:
        # An unmatched apostrophe.
        words = rule.split()
    # A path in a rule is relative to the workspace, which is the root here.
    program = program_identity(words[0], "/", "/") if words and words[0][:1] not in ("/", "~") else ""
    program = program or (program_identity(words[0], "", "") if words else "")
    return " ".join(map(quote_word, (program, *words[1:]))).split()


def rule_for(command: str) -> str:
    """Return the narrowest useful rule that allows a canonical command."""
    words = command.split()
    has_subcommand = len(words) > 1 and not words[1].startswith("-") and words[1] not in _RUNNERS
    if has_subcommand and words[0] in _SUBCOMMANDS and covers_command(" ".join(words[:2]), command):
        return " ".join(words[:2])
    return " ".join(words)


def suggest_rules(commands: Iterable[str], digests: Mapping[str, str]) -> tuple[str, ...]:
    """Return rules that would allow these commands, or none if a rule for one of them would be too broad.

    A rule for a command that runs files of the workspace is bound to their content.
    """
    rules: dict[str, None] = {}
    for command in commands:
        words = command.split()
        program = words[0].rpartition("/")[2] if words else ""
        is_runner = len(words) > 1 and words[1] in _RUNNERS
        if not program or program in _TOO_BROAD or is_runner or not program.isprintable():
            return ()
        digest = digests.get(command)
        rules[f"{digest} {command}" if digest else rule_for(command)] = None
    return tuple(rules)
