"""Allow and deny rules as people write them: the first words of one simple command."""

_SUBCOMMANDS = frozenset(
    ("git", "gh", "npm", "pnpm", "yarn", "pip", "pip3", "cargo", "gem", "apt", "apt-get", "dnf", "brew", "systemctl")
)
# These run whatever is named after them; a rule of two words would allow everything.
_RUNNERS = frozenset(("run", "exec", "x", "dlx", "run-script", "alias"))
_REDIRECTIONS = ("<", ">", "&>")


def covers(rule: str, command: str) -> bool:
    """Say whether a rule's words are the first words of a canonical command and no redirection follows unseen."""
    wanted, words = rule.split(), command.split()
    if not wanted or words[: len(wanted)] != wanted:
        return False
    return not any(word.startswith(_REDIRECTIONS) for word in words[len(wanted) :])


def names(rule: str, command: str) -> bool:
    """Say whether a rule's words are the first words of a command, whatever follows; for rules that forbid."""
    wanted = rule.split()
    return bool(wanted) and command.split()[: len(wanted)] == wanted


def rule_for(command: str) -> str:
    """Return the narrowest sensible rule that would allow a canonical command."""
    words = command.split()
    is_plain = len(words) > 1 and not words[1].startswith("-") and words[1] not in _RUNNERS
    if is_plain and words[0] in _SUBCOMMANDS and covers(" ".join(words[:2]), command):
        return " ".join(words[:2])
    return " ".join(words)
