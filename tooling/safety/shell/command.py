"""One simple command as it will run: its words, redirections and place, with what is not known marked as such."""

import re
from dataclasses import field

from tooling.contract.action import Decision
from tooling.contract.fast_dataclass import dataclass

# Noncharacters of Unicode stand for text that is only known when the command runs; nobody can type them unnoticed.
UNKNOWN = "\ufdd0"
HIDDEN = "\ufdd1"
_UNKNOWNS = re.compile(f"[{UNKNOWN}{HIDDEN}]")
_PLAIN = re.compile(r"[\w@%+=:,./~^*?\[\]{}…!-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """One redirection, without its descriptor."""

    operator: str
    target: str
    is_output: bool = False

    @property
    def writes(self) -> bool:
        """Say whether the target may be changed."""
        return ">" in self.operator


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One simple command; `cwd` is where it runs, `stdin` the text it reads where that is known.

    It is vouched for when the text itself defines it, or a package manager of the project finds it.
    """

    words: tuple[str, ...]
    cwd: str
    redirects: tuple[Redirect, ...] = ()
    stdin: str | None = None
    has_piped_stdin: bool = False
    is_cwd_certain: bool = True
    variables_read: frozenset[str] = frozenset()
    depth: int = 0
    is_trusted: bool = False
    program: str = field(init=False)

    def __post_init__(self) -> None:
        """Know the program's name without its folder: everybody asks for it."""
        object.__setattr__(self, "program", program_name(self.words))

    @property
    def display(self) -> str:
        """Return the words a person would write a rule with: program, arguments, redirections."""
        words = [self.program, *self.words[1:]] if self.words else []
        targets = (f"{redirect.operator} {_quote(redirect.target)}" for redirect in self.redirects)
        return " ".join((*map(_quote, words), *targets))


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A piece of program text that an interpreter is handed."""

    language: str
    text: str


def program_name(words: tuple[str, ...] | list[str]) -> str:
    """Return the last part of the program's path, or nothing."""
    return words[0].rpartition("/")[2] if words else ""


def is_unknown(text: str) -> bool:
    """Say whether a part of the text is only known when it runs."""
    return UNKNOWN in text or HIDDEN in text


def display_word(word: str) -> str:
    """Return a word with what is unknown shown as an ellipsis."""
    return _UNKNOWNS.sub("…", word) if is_unknown(word) else word


def _quote(word: str) -> str:
    word = display_word(word)
    if _PLAIN.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A reason and what follows from it; with `is_doubt` no part of the text may speak for the whole."""

    decision: Decision
    rule: str
    reason: str
    command: str = ""
    is_doubt: bool = False
    category: str = ""


def ask(rule: str, reason: str, command: str = "") -> Finding:
    """Return a reason to ask."""
    return Finding(decision=Decision.ASK, rule=rule, reason=reason, command=command)


def block(rule: str, reason: str, command: str = "") -> Finding:
    """Return a reason to refuse."""
    return Finding(decision=Decision.BLOCK, rule=rule, reason=reason, command=command)


def unparsable() -> Finding:
    """Return the doubt about a text that the grammar does not quite follow."""
    return doubt("unparsable", "it cannot be parsed reliably")


def doubt(rule: str, reason: str) -> Finding:
    """Return a reason not to trust the reading of the text."""
    return Finding(decision=Decision.ASK, rule=rule, reason=reason, is_doubt=True)
