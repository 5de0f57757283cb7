"""What follows from one command: its effects on the rest of the text, what it prints, and what it runs inside."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tooling.contract.action import Decision
from tooling.safety.shell.command import HOLE, Code, Command, Finding, Redirect, ask, doubt, is_unknown, program_name
from tooling.safety.shell.constant_output import hides, printed
from tooling.safety.shell.interpreters import language_of
from tooling.safety.shell.nested_types import Inner, ShellText
from tooling.safety.shell.state import Context, Made, joined
from tooling.safety.shell.unwrap import unwrapped
from tooling.safety.shell.wrappers import PROJECT_RUNNERS

if TYPE_CHECKING:
    from tooling.safety.shell.reader import ShellReader

_MAKERS = frozenset({"make", "gmake", "just"})
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile", "justfile")
_PACKAGERS = frozenset({"npm", "yarn", "pnpm", "bun"})


def recipes(program: str, cwd: str, made: Made) -> Iterator[str | None]:
    """Yield the shell texts that a program finds in what was just written; None is one that nobody can see."""
    names: tuple[str, ...]
    if program in _MAKERS:
        names = _MAKEFILES
    elif program in _PACKAGERS:
        names = ("package.json",)
    else:
        return
    for name in names:
        path = joined(cwd, name)
        if path in made.files:
            content = made.files[path]
            yield from (None,) if content is None else _scripts(content) if name == "package.json" else _lines(content)


def _lines(makefile: str) -> Iterator[str]:
    for line in makefile.splitlines():
        if line.startswith(("\t", " ")):
            yield line.strip().lstrip("@-+")


def _scripts(package: str) -> Iterator[str | None]:
    try:
        scripts = json.loads(package).get("scripts", {})
    except (ValueError, AttributeError):
        yield None
        return
    yield from (script for script in (scripts.values() if isinstance(scripts, dict) else ()) if isinstance(script, str))


_CHANGING = frozenset(
    {"cd", "pushd", "popd", "set", "shift", "read", "mapfile", "readarray", "getopts", "printf", "let", "mkdir"}
    | {"alias"}
)


def apply_effects(command: Command, context: Context) -> None:
    """Change the scope as the command will."""
    words, scope = command.words, context.scope
    if words[0] not in _CHANGING and "-o" not in words:
        return
    match words[0]:
        case "cd" | "pushd":
            _change_directory(words, context)
        case "popd":
            scope.go_back()
        case "set":
            _set(words, context)
        case "shift" if scope.positional:
            scope.positional = scope.positional[int(words[1]) if words[1:] and words[1].isdigit() else 1 :]
        case "read":
            _read(command, context)
        case "mapfile" | "readarray" | "getopts":
            for name in words[1:]:
                if name.isidentifier():
                    scope.forget(name)
        case "printf" if words[1:2] == ("-v",) and len(words) > 2:
            scope.forget(words[2])
        case "let":
            for word in words[1:]:
                scope.forget(word.partition("=")[0].rstrip("+-*/"))
        case "alias":
            scope.made.aliases |= {word.partition("=")[0] for word in words[1:] if "=" in word}
        case "mkdir":
            _make_folders(command, context)
        case _ if "-o" in words[1:-1]:
            context.scope.made.note(joined(command.cwd, words[words.index("-o") + 1]))


def _change_directory(words: tuple[str, ...], context: Context) -> None:
    targets = [word for word in words[1:] if word == "-" or not word.startswith(("-", "+"))]
    scope = context.scope
    if not targets:
        scope.go("~")
    elif targets[0] == "-":
        scope.go_back()
    elif len(targets) > 1:
        # One of several places: which one is not known, where they lie is judged with the command itself.
        scope.go(joined(scope.cwd, targets[0]) if len({*targets}) == 1 else HOLE)
    else:
        scope.go(targets[0])


def _set(words: tuple[str, ...], context: Context) -> None:
    if "--" in words:
        context.scope.positional = words[words.index("--") + 1 :]
    if any(word.startswith("-") and not word.startswith("--") and "e" in word for word in words[1:]):
        context.scope.is_certain = True


def _read(command: Command, context: Context) -> None:
    names = [word for word in command.words[1:] if word.isidentifier()]
    lines = command.stdin.splitlines() if command.stdin else []
    for name in names or ["REPLY"]:
        if len(names) == 1 and lines and not any(map(is_unknown, lines)) and len(lines) <= 200:
            context.scope.assign(name, lines, may_keep=False)
        else:
            context.scope.forget(name)


def _make_folders(command: Command, context: Context) -> None:
    made = context.scope.made
    for word in command.words[1:]:
        path = joined(command.cwd, word)
        while not word.startswith("-") and len(path) > len(command.cwd) and path not in made.since:
            made.note(path)
            path = path.rpartition("/")[0]


_DEEPEST = 8
# Where one of these stands for a program, the grammar has lost its way.
_KEYWORDS = frozenset(
    {"if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select"}
    | {"function", "{", "}", "!", "[["}
)
_NOT_SEEN = "it runs code that was not seen"


class InnerReader:
    """Follows commands into what they run, to a depth that honest commands do not reach."""

    def __init__(self, reader: "ShellReader") -> None:
        self._reader = reader

    def take(self, command: Command, context: Context, assigned: list[tuple[str, list[str]]]) -> None:
        """Take in one command of the text."""
        reader = self._reader
        if command.words and context.scope.is_defined(command.words[0]):
            command = replace(command, is_vouched_for=True)
        reader.commands.append(command)
        reader.made.clock = len(reader.commands)
        if not command.words:
            self._print(command, None if command.redirects else "", context)
            return
        if command.words[0] in _KEYWORDS:
            reader.findings.append(doubt("unparsable", "it cannot be understood for certain"))
        apply_effects(command, context)
        self._print(command, printed(command.words, command.stdin, command.cwd), context)
        if context.sink is not None and hides(command.words, command.stdin):
            context.sink.is_hidden = True
        inside = context
        if assigned:
            inside = replace(context, scope=context.scope.child())
            for name, values in assigned:
                inside.scope.assign(name, values, may_keep=False)
        reader.call(command.words[0], command.words, inside)
        if context.scope.made.files:
            self._recipes(command, inside)
        self._follow(command, unwrapped(command.words, command.stdin), inside)

    def _follow(self, command: Command, inner: Inner, context: Context) -> None:
        reader = self._reader
        if not (inner.argvs or inner.texts or inner.codes or inner.script or inner.reads_code or inner.assigned):
            self._run_made(command, command.words[0], "", context)
            return
        if reader.depth >= _DEEPEST:
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
            self._again(argv, replace(command, is_vouched_for=is_vouched_for), context)
        for text in inner.texts:
            self._text(text, command, context)
        for code in inner.codes:
            self._code(code, command, context)
        if inner.script:
            self._run_made(command, inner.script, inner.language, context)
        elif inner.reads_code:
            self._unseen(command, inner.language, context)
        reader.depth -= 1

    def _again(self, argv: tuple[str, ...], command: Command, context: Context) -> None:
        self.take(replace(command, words=argv, redirects=(), depth=self._reader.depth), context, [])

    def _text(self, text: ShellText, command: Command, context: Context) -> None:
        if is_unknown(text.text) and text.is_same_shell:
            self._reader.findings.append(
                ask("unseen-code", "it runs text that is only known when it runs", command.shown)
            )
        inside = replace(context, stdin=command.stdin, feed=None, is_fed=command.is_fed)
        if not text.is_same_shell:
            inside = replace(inside, scope=context.scope.child())
            inside.scope.positional = text.positional
        elif text.is_later:
            inside = replace(inside, scope=context.scope.child())
            inside.scope.positional = None
        self._reader.text(text.text, inside)

    def _code(self, code: Code, command: Command, context: Context) -> None:
        # Its tables of signs are large, and most commands hand no program text to anybody.
        from tooling.safety.shell.code_scan import scanned

        found = scanned(code)
        findings = self._reader.findings
        findings += [ask(rule, reason, command.shown) for rule, reason in found.asks]
        findings += [
            Finding(decision=Decision.BLOCK, rule=rule, reason=reason, command=command.shown)
            for rule, reason in found.blocks
        ]
        # What a program feeds to the commands it starts, nobody sees.
        fed = replace(command, stdin=None, is_fed=True)
        for argv in found.argvs:
            self._again(argv, replace(fed, is_vouched_for=argv[0] == "open()"), context)
        for text in found.texts:
            self._text(ShellText(text=text), fed, context)

    def _recipes(self, command: Command, context: Context) -> None:
        for text in recipes(command.program, command.cwd, context.scope.made):
            if text is None:
                self._reader.findings.append(
                    ask("unseen-code", "it runs what it has just written unseen", command.shown)
                )
            else:
                self._text(ShellText(text=text), replace(command, stdin=None), context)

    def _unseen(self, command: Command, language: str, context: Context) -> None:
        """Judge an interpreter that reads its program from a file or a pipe."""
        sources = [redirect.target for redirect in command.redirects if not redirect.writes]
        if sources:
            self._run_made(command, sources[-1], language, context)
        elif command.is_fed:
            self._reader.findings.append(ask("unseen-code", _NOT_SEEN, command.shown))

    def _run_made(self, command: Command, script: str, language: str, context: Context) -> None:
        """Judge a script that the text itself has written before."""
        if script.startswith("/dev/fd/") or (language == "shell" and script == "/dev/stdin"):
            self._reader.findings.append(ask("unseen-code", _NOT_SEEN, command.shown))
            return
        files = context.scope.made.files
        path = joined(command.cwd, script)
        if not files or ("/" not in script and not language) or path not in files:
            return
        content = files[path]
        if content is None:
            self._reader.findings.append(ask("unseen-code", "it runs what it has just written unseen", command.shown))
            return
        language = language or _language(path, content)
        if language == "shell":
            self._text(ShellText(text=content, positional=command.words[1:]), replace(command, stdin=None), context)
        elif language:
            self._code(Code(language=language, text=content), command, context)

    def _print(self, command: Command, text: str | None, context: Context) -> None:
        """Send what the command prints where it goes: to a file, to the next command, into the command line."""
        if not command.redirects and command.program != "tee":
            if context.sink is not None:
                context.sink.add(text)
            return
        made = context.scope.made
        outputs = [redirect for redirect in command.redirects if redirect.is_output]
        if command.words and command.program == "tee":
            names = [word for word in command.words[1:] if not word.startswith("-")]
            outputs += [Redirect(operator=">", target=name) for name in names]
            text = command.stdin
        for output in outputs:
            path = joined(command.cwd, output.target)
            before = made.files.get(path, "") if output.operator == ">>" else ""
            made.note(path)
            made.files[path] = None if text is None or before is None else before + text
        if context.sink is not None and not any(redirect.is_output for redirect in command.redirects):
            context.sink.add(text)


def _language(path: str, content: str) -> str:
    """Return the language of a script that is run by its name."""
    if content.startswith("#!"):
        first = content.partition("\n")[0].replace("/usr/bin/env ", "")
        return language_of(program_name(first[2:].split())) if first[2:].split() else ""
    return "shell" if HOLE not in path else ""
