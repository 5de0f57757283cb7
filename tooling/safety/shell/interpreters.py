"""Shells and interpreters: where their program text is, and which script they run."""

import re

from tooling.safety.shell.command import Code
from tooling.safety.shell.nested_types import NestedCode, ShellText
from tooling.safety.shell.wrappers import CODE_FIRST, CODE_OPTIONS, CODE_VALUES, LANGUAGES, SHELLS

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*[dmtw]*")
_CLUSTERED = frozenset({"python", "perl", "ruby", "php", "lua", "awk", "sed"})
_SHELL_VALUES = ("--rcfile", "--init-file", "-O", "+O")


def language_of(program: str) -> str:
    """Return the language an interpreter speaks, `shell` for shells, or nothing."""
    if program in SHELLS:
        return "shell"
    if program in LANGUAGES:
        return LANGUAGES[program]
    return "python" if _PYTHON.fullmatch(program) else ""


def read_shell(words: tuple[str, ...], stdin: str | None, inner: NestedCode) -> None:
    """Read the words of a shell: a text, a script, or what comes in."""
    at, has_text, reads_stdin = 1, False, False
    while at < len(words):
        word = words[at]
        if word in ("--", "-"):
            at += 1
            break
        if word in _SHELL_VALUES:
            at += 2
        elif word.startswith("--command="):
            inner.texts.append(ShellText(text=word.partition("=")[2]))
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
    inner.language = "shell"
    if has_text:
        if rest:
            inner.texts.append(ShellText(text=rest[0], positional=rest[2:]))
    elif rest and not reads_stdin:
        inner.script = rest[0]
    elif stdin is not None:
        inner.texts.append(ShellText(text=stdin, positional=rest))
    else:
        inner.reads_code = True


def read_interpreter(language: str, program: str, words: tuple[str, ...], stdin: str | None, inner: NestedCode) -> None:
    """Read the words of an interpreter: program texts, modules, a script, or what comes in."""
    inner.language = language
    options, values = CODE_OPTIONS.get(language, ()), CODE_VALUES.get(language, ())
    modules = "".join(f"use {word[2:]}; " for word in words[1:] if word[:2] in ("-M", "-r") and len(word) > 2)
    letters = {option[1] for option in options if len(option) == 2}
    if program == "deno" and words[1:2] == ("eval",):
        inner.codes.append(Code(language=language, text=" ".join(words[2:])))
    at, is_coded, plain = 1, False, ""
    while at < len(words):
        word = words[at]
        option, _, glued = word.partition("=")
        if word in options or (is_option_cluster(word) and word[-1] in letters and _may_cluster(word, language)):
            is_coded = True
            inner.codes += [Code(language=language, text=modules + text) for text in words[at + 1 : at + 2]]
            at += 2
            if language == "python":
                return
        elif glued and option in options and option.startswith("--"):
            is_coded = True
            inner.codes.append(Code(language=language, text=glued))
            at += 1
        elif language == "python" and (word == "-m" or (is_option_cluster(word) and word.endswith("m"))):
            if at + 1 < len(words):
                inner.argvs.append(words[at + 1 :])
            return
        elif word in values:
            is_coded = is_coded or word in ("-f", "--file", "--from-file")
            at += 2
        elif _is_glued_code(word, letters, language):
            is_coded = True
            inner.codes.append(Code(language=language, text=word[2:]))
            at += 1
        elif language == "editor" and word.startswith("+"):
            inner.codes.append(Code(language=language, text=word[1:]))
            at += 1
        elif word.startswith("-") and word != "-":
            at += 1
        else:
            plain = word
            break
    if language in CODE_FIRST or language == "sql":
        if not is_coded or language == "sql":
            start = at if language in CODE_FIRST else at + 1
            inner.codes += [Code(language=language, text=text) for text in words[start : start + 1]]
        if language == "sql" and stdin is not None:
            inner.codes.append(Code(language=language, text=stdin))
    elif language == "editor":
        inner.codes += [Code(language=language, text=stdin)] if stdin is not None else []
    elif plain and plain not in ("-", "/dev/stdin"):
        inner.script = "" if is_coded else plain
    elif not is_coded:
        if stdin is not None:
            inner.codes.append(Code(language=language, text=stdin))
        else:
            inner.reads_code = language not in ("editor", "lisp", "debugger", "dc") and not _is_version_or_help(words)


def _is_version_or_help(words: tuple[str, ...]) -> bool:
    """Say whether an interpreter only tells about itself."""
    return bool({"-V", "--version", "-v", "-h", "--help", "-VV"} & {*words[1:]})


def _may_cluster(word: str, language: str) -> bool:
    return language in _CLUSTERED or (language == "editor" and word[-1] == "c")


def is_option_cluster(word: str) -> bool:
    """Say whether a word is several one-letter options at once."""
    return len(word) > 2 and word[0] == "-" and word[1] != "-" and word[1:].isalnum()


def _is_glued_code(word: str, letters: set[str], language: str) -> bool:
    is_glued = len(word) > 2 and word[0] == "-" and word[1] in letters and not word[1:].isalnum()
    return is_glued and language in ("perl", "ruby", "python", "php", "sed", "awk", "lua")
