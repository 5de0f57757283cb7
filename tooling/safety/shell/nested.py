"""What follows from one command: its effects on the rest of the text, what it prints, and what it runs inside."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tooling.contract.action import Decision
from tooling.safety.shell.command import UNKNOWN, Code, Command, Finding, Redirect, ask, doubt, is_unknown, program_name
from tooling.safety.shell.constant_output import is_decoding, known_output
from tooling.safety.shell.interpreters import language_of
from tooling.safety.shell.nested_types import NestedCode, ShellText
from tooling.safety.shell.state import Context, SideEffects, join_path
from tooling.safety.shell.unwrap import unwrap
from tooling.safety.shell.wrappers import PROJECT_RUNNERS

if TYPE_CHECKING:
    from tooling.safety.shell.reader import ShellReader

_MAKE_PROGRAMS = frozenset({"make", "gmake", "just"})
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile", "justfile")
_PACKAGE_MANAGERS = frozenset({"npm", "yarn", "pnpm", "bun"})


def build_scripts(program: str, cwd: str, made: SideEffects) -> Iterator[str | None]:
    """Yield the shell texts that a program finds in what was just written; None is one that nobody can see."""
    names: tuple[str, ...]
    if program in _MAKE_PROGRAMS:
        names = _MAKEFILES
    elif program in _PACKAGE_MANAGERS:
        names = ("package.json",)
    else:
        return
    for name in names:
        path = join_path(cwd, name)
        if path in made.files:
            content = made.files[path]
            yield from (
                (None,)
                if content is None
                else _package_scripts(content)
                if name == "package.json"
                else _recipe_lines(content)
            )


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


_STATEFUL_BUILTINS = frozenset(
    {"cd", "pushd", "popd", "set", "shift", "read", "mapfile", "readarray", "getopts", "printf", "let", "mkdir"}
    | {"alias"}
)


def apply_effects(command: Command, context: Context) -> None:
    """Change the scope as the command will."""
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
            scope.made.aliases |= {word.partition("=")[0] for word in words[1:] if "=" in word}
        case "mkdir":
            _apply_mkdir(command, context)
        case _ if "-o" in words[1:-1]:
            context.scope.made.add_path(join_path(command.cwd, words[words.index("-o") + 1]))


def _apply_cd(words: tuple[str, ...], context: Context) -> None:
    targets = [word for word in words[1:] if word == "-" or not word.startswith(("-", "+"))]
    scope = context.scope
    if not targets:
        scope.change_dir("~")
    elif targets[0] == "-":
        scope.change_back()
    elif len(targets) > 1:
        # One of several places: which one is not known, where they lie is judged with the command itself.
        scope.change_dir(join_path(scope.cwd, targets[0]) if len({*targets}) == 1 else UNKNOWN)
    else:
        scope.change_dir(targets[0])


def _apply_set(words: tuple[str, ...], context: Context) -> None:
    if "--" in words:
        context.scope.positional = words[words.index("--") + 1 :]
    if any(word.startswith("-") and not word.startswith("--") and "e" in word for word in words[1:]):
        context.scope.is_certain = True


def _apply_read(command: Command, context: Context) -> None:
    names = [word for word in command.words[1:] if word.isidentifier()]
    lines = command.stdin.splitlines() if command.stdin else []
    for name in names or ["REPLY"]:
        if len(names) == 1 and lines and not any(map(is_unknown, lines)) and len(lines) <= 200:
            context.scope.assign(name, lines, may_keep=False)
        else:
            context.scope.set_unknown(name)


def _apply_mkdir(command: Command, context: Context) -> None:
    made = context.scope.made
    for word in command.words[1:]:
        path = join_path(command.cwd, word)
        while not word.startswith("-") and len(path) > len(command.cwd) and path not in made.created_at:
            made.add_path(path)
            path = path.rpartition("/")[0]


_MAX_DEPTH = 8
# Where one of these stands for a program, the grammar has lost its way.
_KEYWORDS = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select"}
    | {"function", "{", "}", "!", "[["}
)
_UNSEEN_CODE = "it runs code that cannot be inspected"


class NestedReader:
    """Follows commands into what they run, to a depth that honest commands do not reach."""

    def __init__(self, reader: "ShellReader") -> None:
        self._reader = reader

    def add_command(self, command: Command, context: Context, assigned: list[tuple[str, list[str]]]) -> None:
        """Take in one command of the text."""
        reader = self._reader
        if command.words and context.scope.is_defined(command.words[0]):
            command = replace(command, is_trusted=True)
        reader.commands.append(command)
        reader.effects.command_count = len(reader.commands)
        if not command.words:
            self._route_output(command, None if command.redirects else "", context)
            return
        if command.words[0] in _KEYWORDS:
            reader.findings.append(doubt("unparsable", "it cannot be parsed reliably"))
        apply_effects(command, context)
        self._route_output(command, known_output(command.words, command.stdin, command.cwd), context)
        if context.output is not None and is_decoding(command.words, command.stdin):
            context.output.is_hidden = True
        inside = context
        if assigned:
            inside = replace(context, scope=context.scope.child())
            for name, values in assigned:
                inside.scope.assign(name, values, may_keep=False)
        reader.call_function(command.words[0], command.words, inside)
        if context.scope.made.files:
            self._read_build_scripts(command, inside)
        self._read_nested(command, unwrap(command.words, command.stdin), inside)

    def _read_nested(self, command: Command, inner: NestedCode, context: Context) -> None:
        reader = self._reader
        if not (inner.argvs or inner.texts or inner.codes or inner.script or inner.reads_code or inner.assigned):
            self._read_created_script(command, command.words[0], "", context)
            return
        if reader.depth >= _MAX_DEPTH:
            reader.findings.append(doubt("too-deep", "it is wrapped too deeply to be judged"))
            return
        reader.depth += 1
        reader.assigned += inner.assigned
        if inner.assigned:
            context = replace(context, scope=context.scope.child())
            for assignment in inner.assigned:
                name, _, value = assignment.partition("=")
                context.scope.assign(name, (value,), may_keep=False)
        is_vouched_for = command.program in PROJECT_RUNNERS or inner.language == "python"
        for argv in inner.argvs:
            self._read_argv(argv, replace(command, is_trusted=is_vouched_for), context)
        for text in inner.texts:
            self._read_text(text, command, context)
        for code in inner.codes:
            self._read_code(code, command, context)
        if inner.script:
            self._read_created_script(command, inner.script, inner.language, context)
        elif inner.reads_code:
            self._read_piped_code(command, inner.language, context)
        reader.depth -= 1

    def _read_argv(self, argv: tuple[str, ...], command: Command, context: Context) -> None:
        self.add_command(replace(command, words=argv, redirects=(), depth=self._reader.depth), context, [])

    def _read_text(self, text: ShellText, command: Command, context: Context) -> None:
        if is_unknown(text.text) and text.is_same_shell:
            self._reader.findings.append(
                ask("unseen-code", "it runs text that is only known at run time", command.display)
            )
        inside = replace(context, stdin=command.stdin, piped_input=None, has_piped_stdin=command.has_piped_stdin)
        if not text.is_same_shell:
            inside = replace(inside, scope=context.scope.child())
            inside.scope.positional = text.positional
        elif text.is_deferred:
            inside = replace(inside, scope=context.scope.child())
            inside.scope.positional = None
        self._reader.read_nested(text.text, inside)

    def _read_code(self, code: Code, command: Command, context: Context) -> None:
        # Its tables of signs are large, and most commands hand no program text to anybody.
        from tooling.safety.shell.code_scan import scan_code

        found = scan_code(code)
        findings = self._reader.findings
        findings += [ask(rule, reason, command.display) for rule, reason in found.asks]
        findings += [
            Finding(decision=Decision.BLOCK, rule=rule, reason=reason, command=command.display)
            for rule, reason in found.blocks
        ]
        # What a program feeds to the commands it starts, nobody sees.
        fed = replace(command, stdin=None, has_piped_stdin=True)
        for argv in found.argvs:
            self._read_argv(argv, replace(fed, is_trusted=argv[0] == "open()"), context)
        for text in found.texts:
            self._read_text(ShellText(text=text), fed, context)

    def _read_build_scripts(self, command: Command, context: Context) -> None:
        for text in build_scripts(command.program, command.cwd, context.scope.made):
            if text is None:
                self._reader.findings.append(
                    ask("unseen-code", "it runs a file that it has just written, with unknown content", command.display)
                )
            else:
                self._read_text(ShellText(text=text), replace(command, stdin=None), context)

    def _read_piped_code(self, command: Command, language: str, context: Context) -> None:
        """Judge an interpreter that reads its program from a file or a pipe."""
        sources = [redirect.target for redirect in command.redirects if not redirect.writes]
        if sources:
            self._read_created_script(command, sources[-1], language, context)
        elif command.has_piped_stdin:
            self._reader.findings.append(ask("unseen-code", _UNSEEN_CODE, command.display))

    def _read_created_script(self, command: Command, script: str, language: str, context: Context) -> None:
        """Judge a script that the text itself has written before."""
        if script.startswith("/dev/fd/") or (language == "shell" and script == "/dev/stdin"):
            self._reader.findings.append(ask("unseen-code", _UNSEEN_CODE, command.display))
            return
        files = context.scope.made.files
        path = join_path(command.cwd, script)
        if not files or ("/" not in script and not language) or path not in files:
            return
        content = files[path]
        if content is None:
            self._reader.findings.append(ask("unseen-code", "it runs a file that it has just written, with unknown content", command.display))
            return
        language = language or _detect_language(path, content)
        if language == "shell":
            self._read_text(
                ShellText(text=content, positional=command.words[1:]), replace(command, stdin=None), context
            )
        elif language:
            self._read_code(Code(language=language, text=content), command, context)

    def _route_output(self, command: Command, text: str | None, context: Context) -> None:
        """Send what the command prints where it goes: to a file, to the next command, into the command line."""
        if not command.redirects and command.program != "tee":
            if context.output is not None:
                context.output.add(text)
            return
        made = context.scope.made
        outputs = [redirect for redirect in command.redirects if redirect.is_output]
        if command.words and command.program == "tee":
            names = [word for word in command.words[1:] if not word.startswith("-")]
            outputs += [Redirect(operator=">", target=name) for name in names]
            text = command.stdin
        for output in outputs:
            path = join_path(command.cwd, output.target)
            before = made.files.get(path, "") if output.operator == ">>" else ""
            made.add_path(path)
            made.files[path] = None if text is None or before is None else before + text
        if context.output is not None and not any(redirect.is_output for redirect in command.redirects):
            context.output.add(text)


def _detect_language(path: str, content: str) -> str:
    """Return the language of a script that is run by its name."""
    if content.startswith("#!"):
        first = content.partition("\n")[0].replace("/usr/bin/env ", "")
        return language_of(program_name(first[2:].split())) if first[2:].split() else ""
    return "shell" if UNKNOWN not in path else ""
