"""Find the code that a command runs besides itself: commands, shell text and program text in its words."""

import fnmatch

from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import UNKNOWN, Code, NestedCode, ShellText, is_unknown, program_name
from tooling.safety.shell.embedded import read_embedded
from tooling.safety.shell.programs import find_commands
from tooling.safety.shell.tables.languages import (
    CODE_ALSO,
    CODE_FIRST,
    CODE_OPTIONS,
    CODE_VALUES,
    LANGUAGES,
    SCANNED_AS,
    SHELLS,
)
from tooling.safety.shell.tables.option_commands import ARGV_OPTIONS, SHELL_TEXT_OPTIONS
from tooling.safety.shell.tables.wrappers import (
    SHELL_TEXT_WRAPPERS,
    SUBCOMMAND_WRAPPERS,
    WRAPPERS,
    XARGS,
    Wrapper,
)

ASSIGNMENT = lazy_pattern(r"[A-Za-z_]\w*\+?=")
_LOADER = lazy_pattern(r"ld-(?:linux|musl).*\.so.*|ld\.so.*")
_PYTHON = lazy_pattern(r"(?:python|pypy)[\d.]*[dmtw]*")
_CLUSTERING_LANGUAGES = frozenset({"python", "perl", "ruby", "php", "lua", "awk", "sed"})
_JOINED_FLAGS = lazy_pattern(r"-[lnpawWsTtuUcvSi0-9]*[eE]")
_SHELL_VALUES = ("--rcfile", "--init-file", "-O", "+O")
_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"})
_CMAKE = {"rm": ("rm",), "remove": ("rm",), "remove_directory": ("rm", "-r"), "env": ("env",), "time": ("time",)}
_SPECIAL = frozenset(
    {"eval", "trap", "alias", "history", "find", "gfind", "bfs", "fd", "fdfind", "xargs", "git", "cmake", "source", "."}
)
_DJANGO = frozenset({"django-admin", "manage.py"})
_OPTION_PROGRAMS = frozenset(key.partition(" ")[0] for key in SHELL_TEXT_OPTIONS)
RUNNERS = frozenset(
    {
        *_SPECIAL,
        *_DJANGO,
        *WRAPPERS,
        *ARGV_OPTIONS,
        *_OPTION_PROGRAMS,
        *SHELL_TEXT_WRAPPERS,
        *LANGUAGES,
        *SHELLS,
        *(name for name, _ in SUBCOMMAND_WRAPPERS),
    }
)


def unwrap(words: tuple[str, ...], stdin: str | None) -> NestedCode:
    """Return the code a command runs besides itself."""
    nested = NestedCode()
    program = program_name(words)
    if program not in RUNNERS and not program.startswith(("py", "ld")):
        read_embedded(words, nested)
        return nested
    if len(words) < 2 and not language_of(program) and program not in ("xargs", "parallel"):
        return nested
    _read_special(program, words, stdin, nested)
    language = language_of(program)
    if language == "shell":
        _read_shell(words, stdin, nested)
    elif language:
        _read_interpreter(language, program, words, stdin, nested)
    if (language == "python" or program in _DJANGO) and "shell" in words[1:4]:
        # `manage.py shell -c CODE`
        nested.codes += [Code(language="python", text=text) for text in _option_values(words, ("-c", "--command"))]
    _read_wrapper(program, words, nested)
    if program in _OPTION_PROGRAMS:
        for key in dict.fromkeys((program, *(f"{program} {word}" for word in words[1:4]))):
            nested.texts += [ShellText(text=text) for text in _option_values(words, SHELL_TEXT_OPTIONS.get(key, ()))]
    for option in ARGV_OPTIONS.get(program, ()):
        nested.argvs += [words[at + 1 :] for at in range(1, len(words) - 1) if words[at] == option][:1]
    if not (language or nested.argvs or program in SHELL_TEXT_WRAPPERS or program in _SPECIAL):
        read_embedded(words, nested)
    return nested


def _read_special(program: str, words: tuple[str, ...], stdin: str | None, nested: NestedCode) -> None:
    match program:
        case "eval":
            nested.texts.append(ShellText(text=" ".join(words[1:]), is_same_shell=True))
        case "trap" if words[1] not in ("-", "", "-p", "-l", "--"):
            nested.texts.append(ShellText(text=words[1], is_same_shell=True, is_deferred=True))
        case "trap" if words[1] == "--" and len(words) > 2:
            nested.texts.append(ShellText(text=words[2], is_same_shell=True, is_deferred=True))
        case "history" if "-s" in words:
            # `fc -s` runs it later.
            nested.texts.append(ShellText(text=" ".join(words[words.index("-s") + 1 :])))
        case "alias":
            # The words after the alias at its use are unknown here.
            nested.texts += [ShellText(text=f"{word.partition('=')[2]} {UNKNOWN}") for word in words[1:] if "=" in word]
        case "find" | "gfind" | "bfs" | "fd" | "fdfind":
            nested.argvs += find_commands(words)
        case "xargs":
            nested.argvs += _xargs_commands(words, stdin)
        case "git":
            _read_git(words, nested)
        case "cmake" if words[1] == "-E":
            nested.argvs += [
                (*_CMAKE.get(word, ()), *words[at + 1 :]) for at, word in enumerate(words) if word in _CMAKE
            ]
        case "source" | ".":
            nested.script, nested.language = words[1], "shell"


def _read_wrapper(program: str, words: tuple[str, ...], nested: NestedCode) -> None:
    if program in SHELL_TEXT_WRAPPERS:
        at, _ = _command_start(words, SHELL_TEXT_WRAPPERS[program])
        if at < len(words):
            nested.texts += _shell_texts(program, words[at:])
            nested.argvs += [words[at:]] if {"-x", "--exec"} & {*words[1:at]} else []
        return
    wrapper = WRAPPERS.get(program)
    start = 1
    if wrapper is None and len(words) > 2:
        wrapper, start = _subcommand(program, words)
    if wrapper is None and _LOADER.fullmatch(program):
        wrapper = Wrapper()
    if wrapper is None or (program == "command" and words[1] in ("-v", "-V")):
        return
    at, possible = _command_start(words[start - 1 :], wrapper)
    at += start - 1
    possible = [index + start - 1 for index in possible]
    if wrapper.has_assignments:
        nested.assigned += [word for word in words[start:at] if ASSIGNMENT.match(word)]
    if program in ("time", "coproc", "exec") and "{" in words[at : at + 2]:
        at = words.index("{", at) + 1
    while at < len(words) and ASSIGNMENT.match(words[at]):
        nested.assigned.append(words[at])
        at += 1
    for index in dict.fromkeys((at, *possible)):
        if index < len(words) and not (index != at and (words[index].startswith("-") or is_unknown(words[index]))):
            nested.argvs.append(words[index:])


def _subcommand(program: str, words: tuple[str, ...]) -> tuple[Wrapper | None, int]:
    if (found := SUBCOMMAND_WRAPPERS.get((program, f"{words[1]} {words[2]}"))) is not None:
        return found, 3
    for at in range(1, min(len(words), 6)):
        if (found := SUBCOMMAND_WRAPPERS.get((program, words[at]))) is not None:
            return found, at + 1
    return None, 1


def _command_start(words: tuple[str, ...], wrapper: Wrapper) -> tuple[int, list[int]]:
    """Return where the nested command starts, and where else it may start if an option is unknown."""
    at, possible = 1, []
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
                possible.append(at + 2 + wrapper.positional_count)
            at += 1
        elif wrapper.has_assignments and ASSIGNMENT.match(word):
            at += 1
        else:
            break
    return at + wrapper.positional_count, possible


def _ends_in_value(word: str, wrapper: Wrapper) -> bool:
    """Return whether a cluster of options ends in one that takes the next word."""
    return (
        _is_option_cluster(word) and f"-{word[-1]}" in wrapper.value_options and word[:2] not in wrapper.value_options
    )


def _shell_texts(program: str, words: tuple[str, ...]) -> list[ShellText]:
    if program in ("hyperfine", "concurrently", "pee", "mispipe", "bench"):
        return [ShellText(text=word) for word in words if not word.startswith(("-", "npm:", "yarn:", "pnpm:"))]
    if program in ("parallel", "sem"):
        cut = next((at for at, word in enumerate(words) if word.startswith(":::")), len(words))
        values = " ".join(words[cut + 1 :]) or UNKNOWN
        text = " ".join(words[:cut])
        # Without a command the values are commands themselves.
        if not text:
            return [ShellText(text=word) for word in words[cut + 1 :]]
        return [ShellText(text=text.replace("{}", values) if "{" in text else f"{text} {values}")]
    return [ShellText(text=" ".join(words))]


def _xargs_commands(words: tuple[str, ...], stdin: str | None) -> list[tuple[str, ...]]:
    at, possible = _command_start(words, XARGS)
    # With another separator than blanks, a line is one argument.
    by_line = any(word in ("-0", "--null", "-d", "--delimiter") or word[:2] == "-d" for word in words[1:at])
    given = (UNKNOWN,) if stdin is None else tuple(stdin.splitlines() if by_line else stdin.split())
    marks = [words[i + 1] for i, word in enumerate(words[:at]) if word in ("-I", "--replace") and i + 1 < len(words)]
    marks += [word[2:] or "{}" for word in words[:at] if word.startswith(("-I", "-i")) and word not in ("-I",)]
    commands = []
    for index in dict.fromkeys((at, *possible)):
        command = words[index:]
        if index != at and (not command or command[0].startswith("-")):
            continue
        for mark in marks:
            command = tuple(word.replace(mark, " ".join(given)) for word in command)
        commands.append(command if marks else (*(command or ("echo",)), *given))
    return commands


def _read_git(words: tuple[str, ...], nested: NestedCode) -> None:
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_VALUES else 1
    if at > 1 and at < len(words):
        nested.argvs.append(("git", *words[at:]))
    if words[at : at + 2] == ("submodule", "foreach"):
        flags = ("--recursive", "--quiet", "-q")
        nested.texts.append(ShellText(text=" ".join(word for word in words[at + 2 :] if word not in flags)))
    for word in words[1:at]:
        key, _, value = word.partition("=")
        if key.lower().startswith("alias.") and value:
            text = value[1:] if value.startswith("!") else f"git {value}"
            nested.texts.append(ShellText(text=text))


def _option_values(words: tuple[str, ...], options: tuple[str, ...]) -> list[str]:
    """Return the values of options, whether separate, attached with `=`, or after a cluster of options."""
    found: list[str] = []
    for at, word in enumerate(words[1:], 1):
        if word[:1] != "-" or not options:
            continue
        option, equals, attached = word.partition("=")
        if any(_may_be(option, known) for known in options):
            found += [attached] if equals else words[at + 1 : at + 2]
        elif _is_option_cluster(word) and f"-{word[-1]}" in options:
            found += words[at + 1 : at + 2]
        elif word[:2] in options and len(word) > 2 and word[1] != "-" and not _is_option_cluster(word):
            found.append(word[2:])
    # No command begins with a dash: `npx rollup -c -w`.
    return [value.partition("=")[2] if "ProxyCommand=" in value else value for value in found if value[:1] != "-"]


def _may_be(word: str, option: str) -> bool:
    """Return whether a word is an option, abbreviates a long one, or is a pattern that may expand to it."""
    if word == option:
        return True
    is_abbreviated = len(word) > 4 and word[:2] == "--" and option.startswith(word)
    return is_abbreviated or (any(mark in word for mark in "*?[") and fnmatch.fnmatchcase(option, word))


def language_of(program: str) -> str:
    """Return the language of an interpreter, `shell` for shells, or an empty string."""
    if program in SHELLS:
        return "shell"
    if program in LANGUAGES:
        return LANGUAGES[program]
    return "python" if _PYTHON.fullmatch(program) else ""


def _read_shell(words: tuple[str, ...], stdin: str | None, nested: NestedCode) -> None:
    """Read the words of a shell: program text, a script, or standard input."""
    at, has_text, reads_stdin = 1, False, False
    while at < len(words):
        word = words[at]
        if word in ("--", "-"):
            at += 1
            break
        if word in _SHELL_VALUES:
            at += 2
        elif word.startswith("--command="):
            nested.texts.append(ShellText(text=word.partition("=")[2]))
            at += 1
        elif word.startswith(("--", "+")) and word != "--command":
            at += 1
        elif word.startswith("-"):
            has_text = has_text or "c" in word
            reads_stdin = reads_stdin or "s" in word
            at += 2 if "o" in word and word != "--command" else 1
        else:
            break
    rest = words[at:]
    nested.language = "shell"
    if has_text:
        if rest:
            nested.texts.append(ShellText(text=rest[0], positional=rest[2:]))
    elif rest and not reads_stdin:
        nested.script = rest[0]
    elif stdin is not None:
        nested.texts.append(ShellText(text=stdin, positional=rest))
    else:
        nested.reads_code = True


def _read_interpreter(
    language: str, program: str, words: tuple[str, ...], stdin: str | None, nested: NestedCode
) -> None:
    """Read the words of an interpreter: program text, modules, a script, or standard input."""
    scanned = nested.language = SCANNED_AS.get(language, language)
    options, values = CODE_OPTIONS.get(language, ()), CODE_VALUES.get(language, ())
    modules = "".join(f"use {word[2:]}; " for word in words[1:] if word[:2] in ("-M", "-r") and len(word) > 2)
    letters = {option[1] for option in options if len(option) == 2}
    if program == "deno" and words[1:2] == ("eval",):
        nested.codes.append(Code(language=scanned, text=" ".join(words[2:])))
    at, has_code, script = 1, False, ""
    while at < len(words):
        word = words[at]
        option, _, attached = word.partition("=")
        if word in options or (_is_option_cluster(word) and word[-1] in letters and _may_cluster(word, language)):
            has_code = at + 1 < len(words)
            nested.codes += [Code(language=scanned, text=modules + text) for text in words[at + 1 : at + 2]]
            at += 2
            if language == "python":
                return
        elif attached and option in options and option.startswith("--"):
            has_code = True
            nested.codes.append(Code(language=scanned, text=attached))
            at += 1
        elif language == "python" and (word == "-m" or (_is_option_cluster(word) and word.endswith("m"))):
            if at + 1 < len(words):
                nested.argvs.append(words[at + 1 :])
            return
        elif word in values:
            has_code = has_code or _is_program_file(words[at:], stdin, nested)
            at += 2
        elif joined := _attached_code(word, letters, language):
            has_code = True
            nested.codes.append(Code(language=scanned, text=modules + joined))
            at += 1
        elif language == "editor" and word.startswith("+"):
            nested.codes.append(Code(language=scanned, text=word[1:]))
            at += 1
        elif word.startswith("-") and word != "-":
            at += 1
        else:
            script = word
            break
    if language == "editor":
        nested.codes += [Code(language=scanned, text=word[1:]) for word in words[at + 1 :] if word.startswith("+")]
        nested.codes += [Code(language=scanned, text=text) for text in _option_values(words[at:], options)]
    plain = words[at:] if language in CODE_FIRST else words[at + 1 :]
    if language in CODE_FIRST or language in CODE_ALSO:
        if not has_code or language in CODE_ALSO:
            nested.codes += [
                Code(language=scanned, text=text) for text in plain[: 1 if language not in CODE_ALSO else None]
            ]
        if language == "sql" and stdin is not None:
            nested.codes.append(Code(language=scanned, text=stdin))
    elif language == "editor":
        nested.codes += [Code(language=scanned, text=stdin)] if stdin is not None else []
    elif script and script not in ("-", "/dev/stdin"):
        nested.script = "" if has_code else script
    elif not has_code:
        _read_stdin(scanned, words, stdin, nested)


def _is_program_file(words: tuple[str, ...], stdin: str | None, nested: NestedCode) -> bool:
    """Return whether an option names a file with program text, which is read if it is standard input."""
    if words[0] not in ("-f", "--file", "--from-file"):
        return False
    if words[1:2] in (("-",), ("/dev/stdin",)):
        _read_stdin(nested.language, words, stdin, nested)
    return True


def _read_stdin(language: str, words: tuple[str, ...], stdin: str | None, nested: NestedCode) -> None:
    if stdin is not None:
        nested.codes.append(Code(language=language, text=stdin))
    else:
        nested.reads_code = language not in ("editor", "lisp") and not _is_version_or_help(words)


def _is_version_or_help(words: tuple[str, ...]) -> bool:
    return bool({"-V", "--version", "-v", "-h", "--help", "-VV"} & {*words[1:]})


def _may_cluster(word: str, language: str) -> bool:
    return language in _CLUSTERING_LANGUAGES or (language == "editor" and word[-1] == "c")


def _is_option_cluster(word: str) -> bool:
    """Return whether a word is a cluster of one-letter options, like `-lc`."""
    return len(word) > 2 and word[0] == "-" and word[1] != "-" and word[1:].isalnum()


def _attached_code(word: str, letters: set[str], language: str) -> str:
    """Return program text joined to its option, as in `-e'puts 1'` or `-lnE'print'`."""
    if word[:1] != "-" or len(word) < 3 or word[1:].isalnum() or language not in _CLUSTERING_LANGUAGES:
        return ""
    flags = _JOINED_FLAGS.match(word) if language in ("perl", "ruby") else None
    at = flags.end() if flags else 2
    return word[at:] if word[at - 1] in letters else ""
