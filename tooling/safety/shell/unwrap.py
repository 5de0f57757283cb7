"""What a command runs besides itself: the commands, shell texts and program texts inside its words."""

import re

from tooling.safety.shell.command import UNKNOWN, is_unknown, program_name
from tooling.safety.shell.interpreters import is_option_cluster, language_of, read_interpreter, read_shell
from tooling.safety.shell.nested_types import NestedCode, ShellText
from tooling.safety.shell.programs import find_commands
from tooling.safety.shell.wrappers import (
    LANGUAGES,
    SHELL_TEXT_OPTIONS,
    SHELL_TEXT_WRAPPERS,
    SHELLS,
    SUBCOMMAND_WRAPPERS,
    WRAPPERS,
    XARGS,
    Wrapper,
)

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_LOADER = re.compile(r"ld-(?:linux|musl).*\.so.*|ld\.so.*")
_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})

_CMAKE = {"rm": ("rm",), "remove": ("rm",), "remove_directory": ("rm", "-r"), "env": ("env",), "time": ("time",)}
_SPECIAL = frozenset({"eval", "trap", "alias", "find", "fd", "fdfind", "xargs", "git", "cmake", "source", "."})
RUNNERS = frozenset(
    {
        *_SPECIAL,
        *WRAPPERS,
        *SHELL_TEXT_OPTIONS,
        *SHELL_TEXT_WRAPPERS,
        *LANGUAGES,
        *SHELLS,
        *(name for name, _ in SUBCOMMAND_WRAPPERS),
    }
)


def unwrap(words: tuple[str, ...], stdin: str | None) -> NestedCode:
    """Return what runs inside a command."""
    inner = NestedCode()
    program = program_name(words)
    if program not in RUNNERS and not program.startswith(("py", "ld")):
        return inner
    if len(words) < 2 and not language_of(program) and program not in ("xargs", "parallel"):
        return inner
    _read_special(program, words, stdin, inner)
    language = language_of(program)
    if language == "shell":
        read_shell(words, stdin, inner)
    elif language:
        read_interpreter(language, program, words, stdin, inner)
    _read_wrapper(program, words, inner)
    if program in SHELL_TEXT_OPTIONS:
        inner.texts += [ShellText(text=text) for text in _option_values(words, SHELL_TEXT_OPTIONS[program])]
    return inner


def _read_special(program: str, words: tuple[str, ...], stdin: str | None, inner: NestedCode) -> None:
    match program:
        case "eval":
            inner.texts.append(ShellText(text=" ".join(words[1:]), is_same_shell=True))
        case "trap" if words[1] not in ("-", "", "-p", "-l", "--"):
            inner.texts.append(ShellText(text=words[1], is_same_shell=True, is_deferred=True))
        case "trap" if words[1] == "--" and len(words) > 2:
            inner.texts.append(ShellText(text=words[2], is_same_shell=True, is_deferred=True))
        case "alias":
            inner.texts += [ShellText(text=word.partition("=")[2]) for word in words[1:] if "=" in word]
        case "find" | "fd" | "fdfind":
            inner.argvs += find_commands(words)
        case "xargs":
            inner.argvs += _xargs_commands(words, stdin)
        case "git":
            _read_git(words, inner)
        case "cmake" if words[1] == "-E":
            inner.argvs += [
                (*_CMAKE.get(word, ()), *words[at + 1 :]) for at, word in enumerate(words) if word in _CMAKE
            ]
        case "source" | ".":
            inner.script, inner.language = words[1], "shell"


def _read_wrapper(program: str, words: tuple[str, ...], inner: NestedCode) -> None:
    if program in SHELL_TEXT_WRAPPERS:
        at, _ = _command_start(words, SHELL_TEXT_WRAPPERS[program])
        if at < len(words):
            inner.texts += _shell_texts(program, words[at:])
        return
    wrapper = WRAPPERS.get(program)
    start = 1
    if wrapper is None and len(words) > 2:
        wrapper, start = _subcommand(program, words)
    if wrapper is None and _LOADER.fullmatch(program):
        wrapper = Wrapper()
    if wrapper is None or (program == "command" and words[1] in ("-v", "-V")):
        return
    at, doubtful = _command_start(words[start - 1 :], wrapper)
    at += start - 1
    doubtful = [index + start - 1 for index in doubtful]
    if wrapper.has_assignments:
        inner.assigned += [word for word in words[start:at] if ASSIGNMENT.match(word)]
    if program in ("time", "coproc", "exec") and "{" in words[at : at + 2]:
        at = words.index("{", at) + 1
    while at < len(words) and ASSIGNMENT.match(words[at]):
        inner.assigned.append(words[at])
        at += 1
    for index in dict.fromkeys((at, *doubtful)):
        if index < len(words) and not (index != at and (words[index].startswith("-") or is_unknown(words[index]))):
            inner.argvs.append(words[index:])


def _subcommand(program: str, words: tuple[str, ...]) -> tuple[Wrapper | None, int]:
    if (found := SUBCOMMAND_WRAPPERS.get((program, f"{words[1]} {words[2]}"))) is not None:
        return found, 3
    for at in range(1, min(len(words), 6)):
        if (found := SUBCOMMAND_WRAPPERS.get((program, words[at]))) is not None:
            return found, at + 1
    return None, 1


def _command_start(words: tuple[str, ...], wrapper: Wrapper) -> tuple[int, list[int]]:
    """Return where the inner command begins, and where else it might when an option is not known."""
    at, doubtful = 1, []
    while at < len(words):
        word = words[at]
        if word == "--":
            at += 1
            break
        if word in wrapper.value_options or _ends_in_value(word, wrapper):
            at += 2
        elif word.startswith("-") and len(word) > 1:
            is_known = word in wrapper.flags or "=" in word or word[:2] in wrapper.value_options or word[1:].isdigit()
            if not is_known:
                doubtful.append(at + 2 + wrapper.positional_count)
            at += 1
        elif wrapper.has_assignments and ASSIGNMENT.match(word):
            at += 1
        else:
            break
    return at + wrapper.positional_count, doubtful


def _ends_in_value(word: str, wrapper: Wrapper) -> bool:
    """Say whether a cluster of letters ends in an option that takes the next word."""
    return is_option_cluster(word) and f"-{word[-1]}" in wrapper.value_options and word[:2] not in wrapper.value_options


def _shell_texts(program: str, words: tuple[str, ...]) -> list[ShellText]:
    if program in ("hyperfine", "concurrently"):
        return [ShellText(text=word) for word in words if not word.startswith("-")]
    if program in ("parallel", "sem"):
        cut = next((at for at, word in enumerate(words) if word.startswith(":::")), len(words))
        values = " ".join(words[cut + 1 :]) or UNKNOWN
        text = " ".join(words[:cut])
        # Without a command the values themselves are commands.
        if not text:
            return [ShellText(text=word) for word in words[cut + 1 :]]
        return [ShellText(text=text.replace("{}", values) if "{" in text else f"{text} {values}")]
    return [ShellText(text=" ".join(words))]


def _xargs_commands(words: tuple[str, ...], stdin: str | None) -> list[tuple[str, ...]]:
    at, doubtful = _command_start(words, XARGS)
    given = tuple(stdin.split()) if stdin is not None else (UNKNOWN,)
    marks = [words[i + 1] for i, word in enumerate(words[:at]) if word in ("-I", "--replace") and i + 1 < len(words)]
    marks += [word[2:] or "{}" for word in words[:at] if word.startswith(("-I", "-i")) and word not in ("-I",)]
    commands = []
    for index in dict.fromkeys((at, *doubtful)):
        command = words[index:]
        if index != at and (not command or command[0].startswith("-")):
            continue
        if marks and any(mark in word for mark in marks for word in command):
            value = " ".join(given)
            replaced = tuple(word if word not in marks else value for word in command)
            commands.append(tuple(_replace_marks(word, marks, value) for word in replaced))
        elif marks:
            commands.append(command)
        else:
            commands.append((*(command or ("echo",)), *given))
    return commands


def _replace_marks(word: str, marks: list[str], value: str) -> str:
    for mark in marks:
        word = word.replace(mark, value)
    return word


def _read_git(words: tuple[str, ...], inner: NestedCode) -> None:
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_VALUES else 1
    if at > 1 and at < len(words):
        inner.argvs.append(("git", *words[at:]))
    if words[at : at + 2] == ("submodule", "foreach"):
        inner.texts.append(ShellText(text=" ".join(word for word in words[at + 2 :] if word != "--recursive")))
    for word in words[1:at]:
        key, _, value = word.partition("=")
        if key.lower().startswith("alias.") and value:
            text = value[1:] if value.startswith("!") else f"git {value}"
            inner.texts.append(ShellText(text=text))


def _option_values(words: tuple[str, ...], options: tuple[str, ...]) -> list[str]:
    """Return the values of options, written apart, glued with `=`, or at the end of a cluster of letters."""
    found: list[str] = []
    for at, word in enumerate(words[1:], 1):
        option, equals, glued = word.partition("=")
        if word in options or (is_option_cluster(word) and f"-{word[-1]}" in options):
            found += words[at + 1 : at + 2]
        elif equals and option in options:
            found.append(glued)
        elif word[:2] in options and len(word) > 2 and word[1] != "-" and not is_option_cluster(word):
            found.append(word[2:])
    return [value.partition("=")[2] if "ProxyCommand=" in value else value for value in found]
