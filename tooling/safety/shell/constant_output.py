"""Compute the output of commands like `echo`, `printf` and `base64 -d` where it is certain before they run."""

import base64
import binascii
import re
from pathlib import PurePath

from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import HIDDEN, UNKNOWN, is_unknown, program_name
from tooling.safety.shell.expand import decode_ansi_c
from tooling.safety.shell.programs import find_result_patterns

# Version managers print settings for the calling shell, all of it generated locally.
_SHELL_HOOKS = lazy_pattern(
    r"(?:pyenv|rbenv|nodenv|jenv|goenv) (?:init|virtualenv-init)|direnv (?:hook|export)|opam env|fnm env"
    r"|mise (?:activate|env)|(?:conda|mamba|micromamba) shell\S*|brew shellenv|dircolors|starship init|zoxide init"
    r"|luarocks path|poetry env"
)
_PREDICTABLE_PROGRAMS = frozenset(
    {"echo", "printf", "pwd", "mktemp", "which", "command", "type", "realpath", "readlink", "dirname", "basename"}
    | {"cat", "base64", "base32", "xxd", "rev", "tr", "pyenv", "rbenv", "nodenv", "jenv", "goenv", "direnv", "opam"}
    | {
        "find",
        "ls",
        "fnm",
        "mise",
        "conda",
        "mamba",
        "micromamba",
        "brew",
        "dircolors",
        "starship",
        "zoxide",
        "luarocks",
        "poetry",
    }
)
_ECHO_OPTION = lazy_pattern(r"-[neE]+")
_FORMAT = lazy_pattern(r"%(?:%|-?\d*s|b|q|d)")
_FIND_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-delete", "-printf", "-fprint", "-fprintf", "-quit"})
_MAX_ROUNDS = 1000
_TR_RANGE = lazy_pattern(r"(.)-(.)")
# Programs that transform text; decoding a known text suggests that it was meant to be hidden.
_DECODERS = frozenset({"base64", "base32", "basenc", "xxd", "uudecode", "openssl", "gpg", "rev", "tr", "sed", "awk"})
_DECODE_OPTIONS = frozenset({"-d", "-D", "-di", "--decode", "-r", "-rp", "-p", "enc"})


_CODED = lazy_pattern(r"\\(?:x[0-9a-fA-F]|0?[1-7][0-7]|u[0-9a-fA-F])")


class Output:
    """The output of a statement, as far as it is known."""

    __slots__ = ("_alternatives", "_parts", "is_hidden")

    def __init__(self) -> None:
        self._parts: list[str | None] = []
        self._alternatives: list[Output] = []
        self.is_hidden = False

    def alternative(self) -> "Output":
        """Return the output of a command that runs only if the one before fails, as in `a || b`."""
        self._alternatives.append(Output())
        return self._alternatives[-1]

    def add(self, text: str | None) -> None:
        """Append the output of a command; None means unknown."""
        self._parts.append(text)

    @property
    def text(self) -> str | None:
        """Return the complete output, or None if part of it is unknown."""
        is_certain = not any(other._parts for other in self._alternatives)
        return self._known_parts if is_certain else None

    @property
    def _known_parts(self) -> str | None:
        if not self._parts or any(part is None for part in self._parts):
            return None
        return "".join(part or "" for part in self._parts)

    @property
    def value(self) -> str:
        """Return the text that a substitution expands to."""
        # Alternatives are other names of the same thing, and the first is as good as any.
        text = self._known_parts
        if text is None:
            return HIDDEN if self.is_hidden else UNKNOWN
        return text.rstrip("\n")


def known_output(words: tuple[str, ...], stdin: str | None, cwd: str) -> str | None:
    """Return the output of a command if it is certain, else None."""
    arguments = words[1:]
    program = program_name(words)
    if program not in _PREDICTABLE_PROGRAMS:
        return None
    if _SHELL_HOOKS.match(" ".join((program, *arguments[:1]))):
        return "true\n"
    match program:
        case "echo":
            return _echo_output(arguments)
        case "printf":
            return _printf_output(arguments)
        case "pwd":
            return cwd + "\n"
        case "mktemp":
            return f"/tmp/{UNKNOWN}\n"
        case "which":
            return f"{arguments[0]}\n" if len(arguments) == 1 else None
        case "command" | "type":
            return f"{arguments[1]}\n" if len(arguments) == 2 and arguments[0] in ("-v", "-p", "-P") else None
        case "realpath" | "readlink":
            return f"{arguments[-1]}\n" if arguments and not arguments[-1].startswith("-") else None
        case "dirname" | "basename":
            return _part_of_path(program, arguments)
        case "find" if not _FIND_ACTIONS & {*arguments}:
            return "\n".join(find_result_patterns(words)) + "\n"
        case "ls" if arguments and not any(argument.startswith("-") for argument in arguments):
            return "\n".join(arguments) + "\n"
        case "cat":
            return stdin if not arguments or arguments == ("-",) else None
        case _:
            return None if stdin is None or is_unknown(stdin) else _decode(words, stdin)


def is_decoding(words: tuple[str, ...], stdin: str | None) -> bool:
    """Return whether a command decodes text."""
    program = program_name(words)
    if program in ("echo", "printf"):
        return any(map(_CODED.search, words[1:]))
    if program not in _DECODERS:
        return False
    is_known = stdin is not None and not is_unknown(stdin)
    return is_known or (program not in ("tr", "sed", "awk") and (program == "rev" or bool(_DECODE_OPTIONS & {*words})))


def _echo_output(arguments: tuple[str, ...]) -> str:
    is_decoded, at, end = False, 0, "\n"
    while at < len(arguments) and _ECHO_OPTION.fullmatch(arguments[at]):
        is_decoded = is_decoded or "e" in arguments[at]
        end = "" if "n" in arguments[at] else end
        at += 1
    text = " ".join(arguments[at:])
    return (decode_ansi_c(_normalize_octal(text)) if is_decoded else text) + end


def _printf_output(arguments: tuple[str, ...]) -> str | None:
    if arguments[:1] == ("--",):
        arguments = arguments[1:]
    if not arguments or arguments[0].startswith("-"):
        return None
    values = list(arguments[1:])

    def fill(found: "re.Match[str]") -> str:
        if found[0] == "%%":
            return "%"
        value = values.pop(0) if values else ""
        return decode_ansi_c(_normalize_octal(value)) if found[0] == "%b" else value

    pattern = decode_ansi_c(_normalize_octal(arguments[0]))
    output = _FORMAT.sub(fill, pattern)
    rounds = 0
    while values and _FORMAT.search(pattern) and rounds < _MAX_ROUNDS:
        output += _FORMAT.sub(fill, pattern)
        rounds += 1
    return None if values and rounds >= _MAX_ROUNDS else output


def _normalize_octal(text: str) -> str:
    return re.sub(r"\\0([0-7]{1,3})", r"\\\1", text)


def _part_of_path(program: str, arguments: tuple[str, ...]) -> str | None:
    if len(arguments) != 1:
        return None
    if arguments[0].startswith(UNKNOWN):
        return f"{UNKNOWN}\n"
    path = PurePath(arguments[0])
    part = str(path.parent) if program == "dirname" else path.name
    return f"{part}\n"


def _decode(words: tuple[str, ...], stdin: str) -> str | None:
    options = {*words[1:]}
    try:
        match program_name(words):
            case "base64" if options & {"-d", "-D", "--decode", "-di"}:
                return base64.b64decode("".join(stdin.split()) + "==").decode("utf-8", "replace")
            case "base32" if options & {"-d", "--decode"}:
                return base64.b32decode("".join(stdin.split())).decode("utf-8", "replace")
            case "xxd" if {"-r", "-p"} <= options or options & {"-rp", "-pr"}:
                return bytes.fromhex("".join(stdin.split())).decode("utf-8", "replace")
            case "rev":
                return "\n".join(line[::-1] for line in stdin.split("\n"))
            case "tr" if len(words) == 3:
                return _translate(stdin, words[1], words[2])
            case _:
                return None
    except (binascii.Error, ValueError):
        return None


def _translate(text: str, old: str, new: str) -> str | None:
    if old.startswith("-"):
        return "".join(char for char in text if char not in _expand_tr_set(new)) if old == "-d" else None
    source, target = _expand_tr_set(old), _expand_tr_set(new)
    if not target or "[:" in old:
        return None
    target += target[-1] * (len(source) - len(target))
    return text.translate({ord(char): target[at] for at, char in reversed(list(enumerate(source)))})


def _expand_tr_set(text: str) -> str:
    def expand(found: "re.Match[str]") -> str:
        first, last = ord(found[1]), ord(found[2])
        return "".join(map(chr, range(first, last + 1))) if 0 <= last - first < 256 else found[0]

    return _TR_RANGE.sub(expand, decode_ansi_c(text))
