"""A simple command with its words, redirections and folder, the code it runs, and findings about it."""

import os.path
from dataclasses import field
from functools import lru_cache

from tooling.contract.action import Decision
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern

# Unicode noncharacters mark text that is only known at run time; the judge flags them in the user's own text.
UNKNOWN = "\ufdd0"
HIDDEN = "\ufdd1"
_UNKNOWN_MARKS = lazy_pattern(f"[{UNKNOWN}{HIDDEN}]")
_NEEDS_NO_QUOTES = lazy_pattern(r"[\w@%+=:,./~^*?\[\]{}…!-]+")

# The fixed search path of commands: a program in one of these folders is the one that its bare name means.
STANDARD_FOLDERS = frozenset(("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"))

UNPARSABLE_REASON = "it cannot be parsed reliably"
TOO_DEEP_REASON = "it is nested too deeply to be judged"
FORK_BOMB_REASON = "it is a fork bomb"
REVERSE_SHELL_REASON = "it opens a reverse shell to another machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """One redirection, without its descriptor."""

    operator: str
    target: str
    is_output: bool = False

    @property
    def writes(self) -> bool:
        return ">" in self.operator


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One simple command; `cwd` is its folder, `stdin` its input if known.

    A command is trusted if the text itself defines it, or if a package manager of the project resolves it. `launcher`
    precedes it in a rule, as `python3 -m` before a module. `root` is the folder that paths of
    programs are shown relative to.
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
    launcher: tuple[str, ...] = ()
    root: str = ""
    program: str = field(init=False)

    def __post_init__(self) -> None:
        """Compute the program's name once, as every check needs it."""
        object.__setattr__(self, "program", program_name(self.words))

    @property
    def display(self) -> str:
        """Return the command as a user would write it in a rule: program, arguments, redirections."""
        program = program_identity(self.words[0], self.cwd, self.root) if self.words else ""
        words = [*self.launcher, program, *self.words[1:]] if self.words else []
        targets = (f"{redirect.operator} {quote_word(redirect.target)}" for redirect in self.redirects)
        return " ".join((*map(quote_word, words), *targets))


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Program text passed to an interpreter."""

    language: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellText:
    """Text that a shell runs: the same shell, or another one with its own positional parameters."""

    text: str
    positional: tuple[str, ...] = ()
    is_same_shell: bool = False
    is_deferred: bool = False


@dataclass(slots=True)
class NestedCode:
    """Everything a command runs besides itself."""

    argvs: list[tuple[str, ...]] = field(default_factory=list)
    texts: list[ShellText] = field(default_factory=list)
    codes: list[Code] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)
    script: str = ""
    language: str = ""
    reads_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A reason to ask or block; `is_doubt` means that the text could not be parsed reliably."""

    decision: Decision
    rule: str
    reason: str
    command: str = ""
    is_doubt: bool = False
    category: str = ""


def ask(rule: str, reason: str, command: str = "") -> Finding:
    return Finding(decision=Decision.ASK, rule=rule, reason=reason, command=command)


def block(rule: str, reason: str, command: str = "") -> Finding:
    return Finding(decision=Decision.BLOCK, rule=rule, reason=reason, command=command)


def doubt(rule: str, reason: str) -> Finding:
    """Return a finding that no approval of a single command can settle."""
    return Finding(decision=Decision.ASK, rule=rule, reason=reason, is_doubt=True)


def unparsable() -> Finding:
    return doubt("unparsable", UNPARSABLE_REASON)


def too_deep() -> Finding:
    return doubt("too-deep", TOO_DEEP_REASON)


def program_name(words: tuple[str, ...] | list[str]) -> str:
    """Return the program's name without its folder, or an empty string."""
    return words[0].rpartition("/")[2] if words else ""


def program_identity(word: str, cwd: str, root: str) -> str:
    """Return the program that a word refers to: a bare name is looked up in the fixed folders, anything else is a path.

    `./git` is not `git`, and `./build.sh` in a subfolder is another script than the one at the root.
    """
    folder, slash, name = word.rpartition("/")
    if not slash or folder in STANDARD_FOLDERS:
        return name
    full = join_path(cwd, word)
    inside = root.rstrip("/") + "/"
    return f"./{full[len(inside) :]}" if root and full.startswith(inside) else full


@lru_cache(maxsize=4096)
def join_path(cwd: str, path: str) -> str:
    """Return a path as seen from a folder, normalized; `~` is kept, and unknown stays unknown."""
    if path.startswith(("/", "~")):
        full = path
    elif path.startswith(UNKNOWN) or cwd == UNKNOWN:
        return UNKNOWN
    else:
        full = f"{cwd}/{path}"
    if full.startswith("~"):
        head, _, rest = full.partition("/")
        inside = os.path.normpath(rest) if rest else "."
        # Paths above the home folder are never allowed, so the root represents all of them.
        return "/" if inside.startswith("..") else head if inside == "." else f"{head}/{inside}"
    normal = os.path.normpath(full)
    return normal[1:] if normal.startswith("//") else normal


def is_unknown(text: str) -> bool:
    """Return whether part of the text is only known at run time."""
    return UNKNOWN in text or HIDDEN in text


def display_word(word: str) -> str:
    """Return the word with unknown parts shown as an ellipsis."""
    return _UNKNOWN_MARKS.sub("…", word) if is_unknown(word) else word


def quote_word(word: str) -> str:
    """Return a word as it is shown and matched by rules, quoted if a shell would need it."""
    word = display_word(word)
    if _NEEDS_NO_QUOTES.fullmatch(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"
