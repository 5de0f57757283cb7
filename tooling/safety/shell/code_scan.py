"""Scan program text for interpreters: the commands it runs, the files it deletes and opens, other dangers."""

import re
from dataclasses import field

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import FORK_BOMB_REASON, REVERSE_SHELL_REASON, UNKNOWN, Code, program_name
from tooling.safety.shell.parse import FORK_BOMB
from tooling.safety.shell.tables.code_patterns import (
    DANGERS,
    DELETE_CALLS,
    LOCALHOST,
    PROCESS_CALLS,
    PROCESS_FUNCTIONS,
    REVERSE_SHELL,
    SOCKET,
    UNCLEAR_COMMAND_REASON,
)

_STRING = lazy_pattern(
    r"'''(.*?)'''|\"\"\"(.*?)\"\"\"|'((?:\\.|[^'\\\n])*)'|\"((?:\\.|[^\"\\\n])*)\"|`((?:\\.|[^`\\])*)`", re.DOTALL
)
_OUTSIDE = lazy_pattern(
    r"(?:~\w*(?:/|$)|/(?:etc|root|home|proc|sys|boot|var|dev|run|srv|mnt|media|Users|private)(?:/|$)|\.\./|\.\.$)"
)
_SENSITIVE = lazy_pattern(
    r"\.env\b|id_(?:rsa|dsa|ecdsa|ed25519)|\.(?:pem|key|p12|pfx|netrc|npmrc|pypirc)$|credentials|secrets?\.",
    re.IGNORECASE,
)
_DYNAMIC = lazy_pattern(
    r"[+%]|\bjoin\b|\bdecode\b|\bformat\b|\bchr\b|\bfromCharCode\b|\bpack\b|\breverse|\[::-1\]|\.\s*\$"
)
_FORMATTED = lazy_pattern(r"\$?\{[^{}]*\}|#\{[^{}]*\}")
_IMPORTED = lazy_pattern(r"\bfrom\s+(?:subprocess|os|pty)\s+import\s+\(?([\w, ]+)")
_ALIASED = lazy_pattern(r"\bimport\s+(?:subprocess|os)\s+as\s+(\w+)")
_SED_S = lazy_pattern(r"s([^\w\s\\])(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1([a-zA-Z0-9]*)[ \t]*([^\s;}]*)", re.DOTALL)
_SED_Y = lazy_pattern(r"y([^\w\s\\])(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1", re.DOTALL)
_SED_ADDRESS = lazy_pattern(r"\\?([/|,#%])(?:\\.|(?!\1).)*\1[IM]*", re.DOTALL)
_SED_TEXT = lazy_pattern(r"(?:^|(?<=[;{}\s\d$!,]))[aic](?:\\\s*|\s+)[^\n]*")
_SED_RUNS = lazy_pattern(r"(?:^|[;{}\s\d$!,])e(?:\s+([^\n]*)|$|(?=[;}]))")
_SED_FILES = lazy_pattern(r"(?:^|[;{}\s\d$!,/])[wWrR]\s+([^\s;}]+)")
_EDITED_FILES = lazy_pattern(r"(?:^|[\n|:])\s*[\d,$.%]*(?:[erwf]|edit|read|write|split|source)!?\s+([/~.][^\s|]*)")
# A file that a call opens by an absolute path.
_OPENED = lazy_pattern(
    r"(?:open|fopen|readFile|writeFile|appendFile|createReadStream|createWriteStream|readFileSync|writeFileSync|readfile"
    r"|appendFileSync|copyFileSync|file_get_contents|file_put_contents|Path|File\.(?:read|write|open|readlines|binread)"
    r"|ZipFile|listdir|scandir|readdirSync|readdir|copyfile|copy|copytree|move|rename|symlink|chmod|chown)\s*\(?\s*[rbf]?['\"](/[^'\"\s]+)"
)
_QUERIED = lazy_pattern(
    r"\b(?:execute(?:script|many|_sql)?|executeUpdate|query|raw|exec_query|exec_driver_sql|sql|run_sql)\s*\("
)
# A file that awk writes.
_WRITTEN_BY_AWK = lazy_pattern(r">\s*\"(/[^\"\s]+)\"")
_MAX_CALL_LENGTH = 20_000
_MAX_PATH_LENGTH = 500
_RUNS_COMMANDS_REASON = "its code runs other programs"
# Commands that program text commonly runs; anything else is easier to write as a command.
_ORDINARY_PROGRAMS = frozenset(
    {
        "git",
        "python",
        "python3",
        "node",
        "npm",
        "cargo",
        "go",
        "make",
        "pytest",
        "gcc",
        "cc",
        "which",
        "echo",
        "ls",
        "true",
    }
)
_SED_RUNS_REASON = "its sed script runs commands"


@dataclass(slots=True)
class CodeScan:
    """Findings in program text: reasons to ask or block, and the commands it is equivalent to."""

    asks: list[tuple[str, str]] = field(default_factory=list)
    blocks: list[tuple[str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    argvs: list[tuple[str, ...]] = field(default_factory=list)


def scan_code(code: Code) -> CodeScan:
    """Scan program text; a call whose arguments are not literals is a reason to ask."""
    found = CodeScan()
    text = code.text
    if code.language == "sed":
        _scan_sed(text, found)
        return found
    if REVERSE_SHELL.search(text) and SOCKET.search(text):
        found.blocks.append(("reverse-shell", REVERSE_SHELL_REASON))
    for danger in DANGERS.get(code.language, ()):
        if danger.pattern.search(text) and not (danger.rule == "code-network" and LOCALHOST.search(text)):
            reasons = found.blocks if danger.blocks else found.asks
            reasons.append((danger.rule, danger.reason))
    _scan_calls(code, found)
    _scan_paths(code, found)
    _scan_queries(code, found)
    if code.language == "awk" and (files := _WRITTEN_BY_AWK.findall(text)):
        found.argvs.append(("tee", *files))
    if code.language == "editor" and (files := _EDITED_FILES.findall(text)):
        found.argvs.append(("open()", *files))
    return found


def _scan_calls(code: Code, found: CodeScan) -> None:
    for pattern in (*PROCESS_CALLS.get(code.language, ()), *_alias_patterns(code)):
        for match in pattern.finditer(code.text):
            _scan_call(code.text, match.end(), found, has_argv0="exec" in match[0] or "spawn" in match[0])
    for pattern, command in DELETE_CALLS.get(code.language, ()):
        for match in pattern.finditer(code.text):
            literals, rest = _arguments(code.text, match.end())
            if literals and not _DYNAMIC.search(rest):
                found.argvs.append((*command, *literals))
            else:
                found.asks.append(("code-deletes", "its code deletes files that it does not name"))


def _alias_patterns(code: Code) -> list["re.Pattern[str]"]:
    """Return patterns for process functions that the text imports under other names."""
    if code.language != "python":
        return []
    imports = [item.split() for match in _IMPORTED.finditer(code.text) for item in match[1].split(",")]
    names = [words[-1] for words in imports if words and words[0] in PROCESS_FUNCTIONS]
    patterns = [rf"(?<![\w.]){name}\s*\(" for name in names]
    patterns += [rf"\b{match[1]}\.(?:{'|'.join(PROCESS_FUNCTIONS)})\s*\(" for match in _ALIASED.finditer(code.text)]
    return [re.compile(pattern) for pattern in patterns]


def _scan_call(text: str, start: int, found: CodeScan, *, has_argv0: bool) -> None:
    literals, rest = _arguments(text, start)
    if not literals or _DYNAMIC.search(rest):
        found.asks.append(("code-runs-commands", UNCLEAR_COMMAND_REASON))
        return
    if any(map(FORK_BOMB.search, literals)):
        found.blocks.append(("fork-bomb", FORK_BOMB_REASON))
    filled = [_FORMATTED.sub(UNKNOWN, literal) for literal in literals]
    if program_name(filled[0].split()) not in _ORDINARY_PROGRAMS:
        found.asks.append(("code-runs-commands", _RUNS_COMMANDS_REASON))
    if "[" in rest or len(filled) > 1:
        found.argvs.append(tuple(filled))
        if has_argv0:
            # The first argument is the file, the second the name it runs under.
            found.argvs += [tuple(filled[1:])] if filled[1:] else []
    else:
        found.texts.append(filled[0])


def _arguments(text: str, start: int) -> tuple[list[str], str]:
    """Return the string literals in a call's arguments, and the rest of the text of the call."""
    literals: list[str] = []
    rest: list[str] = []
    at, depth = start, 0
    # A call that starts with a backtick is a string itself.
    if start and text[start - 1] in "`":
        end = text.find("`", start)
        return [text[start : end if end > 0 else len(text)]], ""
    while at < len(text) and at - start < _MAX_CALL_LENGTH:
        string = _STRING.match(text, at)
        if string:
            literals.append(_unquote(next(group for group in string.groups() if group is not None)))
            at = string.end()
            continue
        char = text[at]
        depth += (char in "([{") - (char in ")]}")
        if depth < 0 or (depth == 0 and char in ";\n"):
            break
        rest.append(char)
        at += 1
    return literals, "".join(rest)


def _unquote(literal: str) -> str:
    return literal.replace('\\"', '"').replace("\\'", "'").replace("\\\\", "\\").replace("\\n", "\n")


def _scan_paths(code: Code, found: CodeScan) -> None:
    if code.language in ("jq", "sql", "lisp", "debugger"):
        return
    literals = (next(group for group in match.groups() if group is not None) for match in _STRING.finditer(code.text))
    paths = tuple(
        literal.lstrip("<>+")
        for literal in literals
        if len(literal) < _MAX_PATH_LENGTH
        and " " not in literal
        and (_OUTSIDE.match(literal.lstrip("<>+")) or _SENSITIVE.search(literal))
    )
    opened = (match[1] for match in _OPENED.finditer(code.text))
    if every := tuple(dict.fromkeys((*paths, *opened))):
        found.argvs.append(("open()", *every))


def _scan_queries(code: Code, found: CodeScan) -> None:
    """Check the literals that program text passes to a database."""
    for match in _QUERIED.finditer(code.text):
        literals, _ = _arguments(code.text, match.end())
        for danger in DANGERS["sql"]:
            if any(map(danger.pattern.search, literals)):
                found.asks.append((danger.rule, danger.reason))


def _scan_sed(text: str, found: CodeScan) -> None:
    files: list[str] = []
    for match in _SED_S.finditer(text):
        if "e" in match[2]:
            found.asks.append(("sed-runs", _SED_RUNS_REASON))
        if "w" in match[2] and match[3]:
            files.append(match[3])
    bare = _SED_TEXT.sub(" ", _SED_Y.sub(" ", _SED_S.sub(" ", text)))
    files += [match[1] for match in _SED_FILES.finditer(bare)]
    rest = _SED_ADDRESS.sub(" ", bare)
    for match in _SED_RUNS.finditer(rest):
        found.asks.append(("sed-runs", _SED_RUNS_REASON))
        if match[1]:
            found.texts.append(match[1])
    if files:
        found.argvs.append(("tee", *files))
