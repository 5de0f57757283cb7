"""Commands that change what the shell knows: `cd`, `read`, `set --`, `mkdir` and their like."""

from tooling.safety.shell.command import HOLE, Command, is_unknown
from tooling.safety.shell.state import joined
from tooling.safety.shell_context import Context

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
