"""Follow a command: apply its effects to the shell state, route its output, and read the code it runs."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import (
    UNKNOWN,
    Code,
    Command,
    NestedCode,
    Redirect,
    ShellText,
    ask,
    block,
    doubt,
    is_unknown,
    join_path,
    program_name,
    quote_word,
    unparsable,
)
from tooling.safety.shell.constant_output import is_decoding, known_output
from tooling.safety.shell.state import Context, ShellReading, SideEffects
from tooling.safety.shell.tables.languages import SHELLS
from tooling.safety.shell.tables.option_commands import names_command
from tooling.safety.shell.tables.wrappers import PROJECT_RUNNERS
from tooling.safety.shell.unwrap import language_of, unwrap

_Assignments: TypeAlias = list[tuple[str, list[str]]]
_MAKE_PROGRAMS = frozenset({"make", "gmake", "just"})
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile", "justfile")
_PACKAGE_MANAGERS = frozenset({"npm", "yarn", "pnpm", "bun"})
_STATEFUL_BUILTINS = frozenset(
    {"cd", "pushd", "popd", "set", "shift", "read", "mapfile", "readarray", "getopts", "printf", "let", "mkdir"}
    | {"alias"}
)
_MAX_WRAPPERS = 8
_MAX_READ_LINES = 200
# A keyword in the place of a program means that the grammar has lost track.
_KEYWORDS = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select"}
    | {"function", "{", "}", "!", "[["}
)
_UNSEEN_CODE_REASON = "it runs code that cannot be inspected"
_DECODED_CODE_REASON = "it runs text that it decodes first"
_UNSEEN_FILE_REASON = "it runs a file that it has just written, with unknown content"
_UNSEEN_TEXT_REASON = "it runs text that is only known at run time"
_UNSEEN_SHELL_REASON = "it starts a shell that reads its commands at run time"
_BRACKETED = lazy_pattern(r"\[([^\]!^])\]")
_TOO_MANY_COMMANDS_REASON = "it runs more commands than can be judged"
_TOO_MANY_WRAPPERS_REASON = "it is wrapped too deeply to be judged"


class NestedReader:
    """Adds commands to a reading and follows them into the code they run.

    `read_text` reads shell text in a context; `call_function` reads the body of a function that the text defines.
    """

    def __init__(
        self,
        reading: ShellReading,
        *,
        read_text: Callable[[str, Context], None],
        call_function: Callable[[tuple[str, ...], Context], None],
    ) -> None:
        self._reading = reading
        self._read_shell_text = read_text
        self._call_function = call_function

    def add_command(self, command: Command, context: Context, assigned: _Assignments) -> None:
        """Add a command of the text; `assigned` are the assignments in front of it."""
        if command.words and context.scope.is_defined(command.words[0]):
            command = replace(command, is_trusted=True)
        if self._reading.is_full:
            self._reading.findings.append(doubt("too-large", _TOO_MANY_COMMANDS_REASON))
            return
        self._reading.add_command(command)
        if not command.words:
            self._route_output(command, None if command.redirects else "", context)
            return
        if command.words[0] in _KEYWORDS:
            self._reading.findings.append(unparsable())
        apply_effects(command, context)
        self._reading.assigned += [f"{name}={UNKNOWN}" for name in _names_set(command.words)]
        self._route_output(command, known_output(command.words, command.stdin, command.cwd), context)
        if context.output is not None and is_decoding(command.words, command.stdin):
            context.output.is_hidden = True
        inside = context
        if assigned:
            inside = replace(context, scope=context.scope.child())
            for name, values in assigned:
                inside.scope.assign(name, values, keep_old=False)
        self._call_function(command.words, inside)
        self._expand_alias(command, inside)
        if context.scope.effects.files:
            self._read_build_scripts(command, inside)
        self._read_nested(command, unwrap(command.words, command.stdin), inside)
        if any(word[:1] == "-" and _BRACKETED.search(word) for word in command.words):
            # `-delet[e]` becomes an option if a file has its name.
            plain = (_BRACKETED.sub(r"\1", word) if word[:1] == "-" else word for word in command.words)
            self.add_command(replace(command, words=tuple(plain)), context, [])

    def _expand_alias(self, command: Command, context: Context) -> None:
        """Read the expansion of an alias of the text, with the words after it."""
        text = context.scope.effects.aliases.get(command.words[0])
        if text is not None and program_name(text.split()) != command.words[0] and len(command.words) > 1:
            words = " ".join(map(quote_word, command.words[1:]))
            self._read_text(ShellText(text=f"{text} {words}"), command, context)

    def read_command_variables(self, context: Context) -> None:
        """Read the values of variables that name a program for others to run, such as PAGER."""
        for assignment in tuple(dict.fromkeys(self._reading.assigned)):
            name, _, value = assignment.partition("=")
            if value and names_command(name, value):
                self._read_shell_text(value, context)

    def _read_nested(self, command: Command, nested: NestedCode, context: Context) -> None:
        reading = self._reading
        if not (nested.argvs or nested.texts or nested.codes or nested.script or nested.reads_code or nested.assigned):
            self._read_created_script(command, command.words[0], "", context)
            return
        if reading.depth >= _MAX_WRAPPERS:
            reading.findings.append(doubt("too-deep", _TOO_MANY_WRAPPERS_REASON))
            return
        reading.depth += 1
        reading.assigned += nested.assigned
        if nested.assigned:
            context = replace(context, scope=context.scope.child())
            for assignment in nested.assigned:
                name, _, value = assignment.partition("=")
                context.scope.assign(name, (value,), keep_old=False)
        is_interpreter = command.program in SHELLS or (bool(nested.language) and len(command.words) == 1)
        if is_interpreter and context.piped_input is not None and context.piped_input.is_hidden:
            self._add_unseen_code(_DECODED_CODE_REASON, command)
        is_module = nested.language == "python"
        inner = replace(
            command,
            is_trusted=is_module or command.program in PROJECT_RUNNERS,
            launcher=(command.program, "-m") if is_module else (),
        )
        for argv in nested.argvs:
            self._read_argv(argv, inner, context)
        for text in nested.texts:
            self._read_text(text, command, context)
        for code in nested.codes:
            self._read_code(code, command, context)
        if nested.script:
            if nested.language == "shell" and command.program in SHELLS and _is_any_script(nested.script, command):
                self._add_unseen_code(_UNSEEN_CODE_REASON, command)
            self._read_created_script(command, nested.script, nested.language, context)
        elif nested.reads_code:
            self._read_piped_code(command, nested.language, context)
        reading.depth -= 1

    def _read_argv(self, argv: tuple[str, ...], command: Command, context: Context) -> None:
        if len(argv) == 1 and " " in argv[0].strip():
            # `yarn exec 'rm -rf src'`: one word with blanks is a line for a shell.
            self._read_text(ShellText(text=argv[0]), command, context)
            return
        self.add_command(replace(command, words=argv, redirects=(), depth=self._reading.depth), context, [])

    def _read_text(self, text: ShellText, command: Command, context: Context) -> None:
        if is_unknown(text.text) and text.is_same_shell:
            self._add_unseen_code(_UNSEEN_TEXT_REASON, command)
        inside = replace(context, stdin=command.stdin, piped_input=None, has_piped_stdin=command.has_piped_stdin)
        if not text.is_same_shell:
            inside = replace(inside, scope=context.scope.child())
            inside.scope.positional = text.positional
        elif text.is_deferred:
            inside = replace(inside, scope=context.scope.child())
            inside.scope.positional = None
        self._read_shell_text(text.text, inside)

    def _read_code(self, code: Code, command: Command, context: Context) -> None:
        # The pattern tables are large, and most commands run no program text.
        from tooling.safety.shell.code_scan import scan_code

        found = scan_code(code)
        self._reading.findings += [ask(rule, reason, command.display) for rule, reason in found.asks]
        self._reading.findings += [block(rule, reason, command.display) for rule, reason in found.blocks]
        # The input that a program passes to its commands is unknown.
        fed = replace(command, stdin=None, has_piped_stdin=True, launcher=())
        for argv in found.argvs:
            self._read_argv(argv, replace(fed, is_trusted=argv[0] == "open()"), context)
        for text in found.texts:
            self._read_text(ShellText(text=text), fed, context)

    def _read_build_scripts(self, command: Command, context: Context) -> None:
        for text in build_scripts(command.program, command.cwd, context.scope.effects):
            if text is None:
                self._add_unseen_code(_UNSEEN_FILE_REASON, command)
            else:
                self._read_text(ShellText(text=text), replace(command, stdin=None), context)

    def _read_piped_code(self, command: Command, language: str, context: Context) -> None:
        """Check an interpreter that reads its program from a file or a pipe."""
        sources = [redirect.target for redirect in command.redirects if not redirect.writes]
        if sources and language == "shell" and _is_no_file(sources[-1]):
            self._add_unseen_code(_UNSEEN_SHELL_REASON, command)
        elif sources:
            self._read_created_script(command, sources[-1], language, context)
        elif command.has_piped_stdin:
            self._add_unseen_code(_UNSEEN_CODE_REASON, command)
        elif language == "shell" and not {"--version", "--help"} & {*command.words}:
            self._add_unseen_code(_UNSEEN_SHELL_REASON, command)

    def _read_created_script(self, command: Command, script: str, language: str, context: Context) -> None:
        """Read a script that the text itself has written earlier."""
        if script.startswith("/dev/fd/") or (language == "shell" and script == "/dev/stdin"):
            self._add_unseen_code(_UNSEEN_CODE_REASON, command)
            return
        files = context.scope.effects.files
        path = join_path(command.cwd, script)
        if not files or ("/" not in script and not language) or path not in files:
            return
        content = files[path]
        if content is None:
            self._add_unseen_code(_UNSEEN_FILE_REASON, command)
            return
        language = language or _detect_language(path, content)
        if language == "shell":
            self._read_text(
                ShellText(text=content, positional=command.words[1:]), replace(command, stdin=None), context
            )
        elif language:
            self._read_code(Code(language=language, text=content), command, context)

    def _add_unseen_code(self, reason: str, command: Command) -> None:
        self._reading.findings.append(ask("unseen-code", reason, command.display))

    def _route_output(self, command: Command, text: str | None, context: Context) -> None:
        """Pass the output of a command to its file, the next command, or the enclosing substitution."""
        if not command.redirects and command.program != "tee":
            if context.output is not None:
                context.output.add(text)
            return
        effects = context.scope.effects
        outputs = [redirect for redirect in command.redirects if redirect.is_output]
        if command.words and command.program == "tee":
            names = [word for word in command.words[1:] if not word.startswith("-")]
            outputs += [Redirect(operator=">", target=name) for name in names]
            text = command.stdin
        for output in outputs:
            path = join_path(command.cwd, output.target)
            before = effects.files.get(path, "") if output.operator == ">>" else ""
            effects.add_path(path)
            effects.files[path] = None if text is None or before is None else before + text
        if context.output is not None and not any(redirect.is_output for redirect in command.redirects):
            context.output.add(text)


def _is_no_file(source: str) -> bool:
    """Return whether a shell would read its commands from a terminal, a descriptor, or an unknown source."""
    return is_unknown(source) or source.lstrip("&").isdigit() or source.startswith("/dev/")


def _is_any_script(script: str, command: Command) -> bool:
    """Return whether a shell runs a file named only by a search or its input; with `-n` it only checks the syntax."""
    only_checks = any(word[:1] == "-" and word[:2] != "--" and "n" in word for word in command.words)
    return (script == UNKNOWN or "/**/" in script) and not only_checks


def build_scripts(program: str, cwd: str, effects: SideEffects) -> Iterator[str | None]:
    """Yield the shell texts that a build tool runs from files the text has written; None for unknown content."""
    names: tuple[str, ...]
    if program in _MAKE_PROGRAMS:
        names = _MAKEFILES
    elif program in _PACKAGE_MANAGERS:
        names = ("package.json",)
    else:
        return
    for name in names:
        path = join_path(cwd, name)
        if path in effects.files:
            content = effects.files[path]
            if content is None:
                yield None
            elif name == "package.json":
                yield from _package_scripts(content)
            else:
                yield from _recipe_lines(content)


def apply_effects(command: Command, context: Context) -> None:
    """Change the scope as the command would."""
    words, scope = command.words, context.scope
    if words[0] not in _STATEFUL_BUILTINS and "-o" not in words:
        return
    match words[0]:
        case "cd" | "pushd":
            _apply_cd(words, context)
        case "popd":
            scope.change_back()
        case "set":
            _apply_set(words, context)
        case "shift" if scope.positional:
            scope.positional = scope.positional[int(words[1]) if words[1:] and words[1].isdigit() else 1 :]
        case "read":
            _apply_read(command, context)
        case "mapfile" | "readarray" | "getopts":
            for name in words[1:]:
                if name.isidentifier():
                    scope.set_unknown(name)
        case "printf" if words[1:2] == ("-v",) and len(words) > 2:
            scope.set_unknown(words[2])
        case "let":
            for word in words[1:]:
                scope.set_unknown(word.partition("=")[0].rstrip("+-*/"))
        case "alias":
            for word in words[1:]:
                name, equals, text = word.partition("=")
                if equals:
                    scope.effects.aliases[name] = text
        case "mkdir":
            _apply_mkdir(command, context)
        case _ if "-o" in words[1:-1]:
            scope.effects.add_path(join_path(command.cwd, words[words.index("-o") + 1]))


def _names_set(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the variables that a builtin sets by name, with values not shown as assignments."""
    match words[0]:
        case "read" | "mapfile" | "readarray" | "getopts":
            names = tuple(word.partition("[")[0] for word in words[1:])
            return tuple(name for name in names if name.isidentifier())
        case "printf" if words[1:2] == ("-v",):
            return tuple(word.partition("[")[0] for word in words[2:3])
    return ()


def _apply_cd(words: tuple[str, ...], context: Context) -> None:
    targets = [word for word in words[1:] if word == "-" or not word.startswith(("-", "+"))]
    scope = context.scope
    if not targets:
        scope.change_dir("~")
    elif targets[0] == "-":
        scope.change_back()
    elif len(targets) > 1:
        # One of several folders, unknown which; each is checked with the command itself.
        scope.change_dir(join_path(scope.cwd, targets[0]) if len({*targets}) == 1 else UNKNOWN)
    else:
        scope.change_dir(targets[0])


def _apply_set(words: tuple[str, ...], context: Context) -> None:
    if "--" in words:
        context.scope.positional = words[words.index("--") + 1 :]
    if any(word.startswith("-") and not word.startswith("--") and "e" in word for word in words[1:]):
        # With `set -e` a failed `cd` ends the script.
        context.scope.is_cwd_certain = True


def _apply_read(command: Command, context: Context) -> None:
    names = [word for word in command.words[1:] if word.isidentifier()]
    lines = command.stdin.splitlines() if command.stdin else []
    splits_words = any(word[:1] == "-" and "a" in word for word in command.words[1:])
    is_known = lines and not splits_words and not any(map(is_unknown, lines)) and len(lines) <= _MAX_READ_LINES
    for name in names or ["REPLY"]:
        if len(names) == 1 and is_known:
            context.scope.assign(name, lines, keep_old=False)
        else:
            context.scope.set_unknown(name)


def _apply_mkdir(command: Command, context: Context) -> None:
    effects = context.scope.effects
    for word in command.words[1:]:
        path = join_path(command.cwd, word)
        while not word.startswith("-") and len(path) > len(command.cwd) and path not in effects.created_at:
            effects.add_path(path)
            path = path.rpartition("/")[0]


def _recipe_lines(makefile: str) -> Iterator[str]:
    for line in makefile.splitlines():
        if line.startswith(("\t", " ")):
            yield line.strip().lstrip("@-+")


def _package_scripts(package: str) -> Iterator[str | None]:
    try:
        scripts = json.loads(package).get("scripts", {})
    except (ValueError, AttributeError):
        yield None
        return
    yield from (script for script in (scripts.values() if isinstance(scripts, dict) else ()) if isinstance(script, str))


def _detect_language(path: str, content: str) -> str:
    """Return the language of a script that is run by its name."""
    if content.startswith("#!"):
        first = content.partition("\n")[0].replace("/usr/bin/env ", "")
        return language_of(program_name(first[2:].split())) if first[2:].split() else ""
    return "shell" if UNKNOWN not in path else ""
