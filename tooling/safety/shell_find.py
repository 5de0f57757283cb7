"""What `find` and `fd` do with what they find: the names they look for stand in for the files."""

from tooling.safety.shell.command import program_name

_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_NAMES = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"})
_FILTERS = frozenset(
    {"!", "-not", "-mtime", "-mmin", "-ctime", "-atime", "-amin", "-cmin", "-size", "-newer", "-newermt", "-user"}
    | {"-group", "-perm", "-regex", "-iregex", "-links"}
)
_FD_RUNS = frozenset({"-x", "-X", "--exec", "--exec-batch"})


def find_commands(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the commands that a search runs on its results, with patterns in the place of files."""
    if program_name(words) != "find":
        return _fd_commands(words)
    commands: list[tuple[str, ...]] = []
    for at, word in enumerate(words):
        if word in _RUNS:
            end = next((index for index in range(at + 1, len(words)) if words[index] in (";", "+")), len(words))
            commands.append(_filled(words[at + 1 : end], _found(words, at)))
        elif word == "-delete" and "-empty" not in words[:at]:
            commands.append(("rm", "-r", *_found(words, at)))
    return [command for command in commands if command]


def found_paths(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return patterns for what a `find` prints."""
    return _found(words, len(words))


def _found(words: tuple[str, ...], upto: int) -> tuple[str, ...]:
    first = next((at for at, word in enumerate(words) if at and word[:1] in ("-", "(", "!")), len(words))
    begins = [word for word in words[1:first] if word not in ("-H", "-L", "-P")] or ["."]
    branch = words[_branch(words, first, upto) : upto]
    names = [
        branch[at + 1]
        for at in range(len(branch) - 1)
        if branch[at] in _NAMES and (at == 0 or branch[at - 1] not in ("!", "-not"))
    ]
    if names and "," not in words:
        return tuple(f"{begin}/**/{name.rstrip('/').rpartition('/')[2] or '*'}" for begin in begins for name in names)
    # Some of everything is not everything.
    rest = "?*" if _FILTERS & {*branch} else "*"
    return tuple(f"{begin}/**/{rest}" for begin in begins)


def _branch(words: tuple[str, ...], first: int, upto: int) -> int:
    """Return where the branch begins that an action belongs to: after the last "-o" outside parentheses."""
    depth = 0
    for at in range(upto - 1, first - 1, -1):
        depth += (words[at] == ")") - (words[at] == "(")
        if depth == 0 and words[at] in ("-o", "-or"):
            return at + 1
    return first


def _filled(command: tuple[str, ...], found: tuple[str, ...]) -> tuple[str, ...]:
    filled: list[str] = []
    for word in command:
        if word == "{}":
            filled += found
        elif "{}" in word:
            filled.append(word.replace("{}", found[0]))
        else:
            filled.append(word)
    return tuple(filled)


def _fd_commands(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    at = next((index for index, word in enumerate(words) if word in _FD_RUNS), None)
    if at is None:
        return []
    endings = [words[i + 1] for i, word in enumerate(words[:at]) if word in ("-e", "--extension") and i + 1 < at]
    found = tuple(f"./**/*.{ending}" for ending in endings) or ("./**/*",)
    command = words[at + 1 :]
    if not any("{" in word for word in command):
        command = (*command, "{}")
    return [_filled(command, found)]
