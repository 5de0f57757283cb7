"""The opening of a conversation: the agent's environment and the limits of its commands, in a few lines."""

import heapq
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from agent.backends.process.environment import find_on_path
from agent.workspace.git_state import GitLookup
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern

MAX_BYTES = 1500
OF_IMAGE = "those of the container's image"
TAG = "environment"
_LISTING, _GIT = "files", "git"
# Listed once: the conversation itself reports later changes.
_NOT_REPEATED = (_LISTING, _GIT)
_PROGRAMS = (
    *("python3", "python", "uv", "pip", "node", "npm", "pnpm", "go", "cargo", "rustc", "java", "gcc", "clang", "make"),
    *("cmake", "git", "rg", "jq", "curl", "ruby", "php", "perl", "sqlite3"),
)
# A sandbox hides their sockets.
_HOST_PROGRAMS = ("docker", "podman", "gh")
_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/nix/store/")
_MAX_NAMES = 200
_NAME_CHARS = 60
_FOLDER_BYTES = 200
_GIT_BYTES = 100
_ITEMS_BYTES = 100
_PLAIN_NAME = lazy_pattern(r"[\w.+@=~/-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Environment of a run; `environ` contains the variables of its commands."""

    folder: Path
    environ: Mapping[str, str]
    date: str
    command_timeout_s: float
    backend: str = "sandbox"
    extra_dirs: tuple[Path, ...] = ()
    read_dirs: tuple[Path, ...] = ()
    allow_net: tuple[str, ...] = ()
    can_ask: bool = False
    is_planning: bool = False

    @property
    def is_sandboxed(self) -> bool:
        """Whether commands run in a sandbox."""
        return self.backend != "host"


def build_opening(surroundings: Surroundings, git: GitLookup | None = None) -> str:
    """Return the opening: one fact a line, at most MAX_BYTES in UTF-8."""
    known = surroundings
    facts = {
        "folder": _shorten(str(known.folder), _FOLDER_BYTES),
        _LISTING: "",
        _GIT: _shorten(git.describe(), _GIT_BYTES) if git else "",
        "today": known.date,
        "platform": f"{sys.platform} {os.uname().machine}",
        "programs": OF_IMAGE if known.backend == "docker" else ", ".join(find_programs(known)),
        "commands": _describe_commands(known),
        "writable": _describe_writable(known),
        "network": _describe_network(known),
        "time": _describe_time(known),
    }
    # Written last: the listing gets the remaining bytes.
    room = MAX_BYTES - _size(_render(facts)) - _size(f"{_LISTING}: \n")
    facts[_LISTING] = list_folder(known.folder, room)
    return _render(facts)


def prepare_opening(surroundings: Surroundings) -> Callable[[], str]:
    """Start querying the repository; return the function that builds the opening."""
    git = GitLookup(surroundings.folder, surroundings.environ)
    return lambda: build_opening(surroundings, git)


def changed_opening(previous: str, current: str) -> str:
    """Return the facts that differ from an earlier opening, except listing and git; empty if there are none."""
    before = _facts(previous)
    changed = {name: fact for name, fact in _facts(current).items() if before.get(name) != fact}
    return _render({name: fact for name, fact in changed.items() if name not in _NOT_REPEATED})


def list_folder(folder: Path, room: int) -> str:
    """Return the names in a folder, hidden ones last, as many as fit, and the number of the rest."""
    try:
        with os.scandir(folder) as entries:
            found = [(entry.name.startswith("."), entry.name, entry) for entry in entries if entry.name != ".git"]
    except OSError:
        return "(the folder cannot be listed)"
    if not found:
        return "(none)"
    first = heapq.nsmallest(_MAX_NAMES, found, key=lambda item: item[:2])
    return _join_fitting([_entry_name(entry) for _, _, entry in first], room, total=len(found))


def find_programs(surroundings: Surroundings) -> list[str]:
    """Return the usual programs that commands can start."""
    folders = [folder for folder in surroundings.environ.get("PATH", "").split(os.pathsep) if folder.startswith("/")]
    # An installation on the PATH is visible in the sandbox.
    shown = (*_SYSTEM, *(f"{os.path.realpath(folder).rpartition('/')[0]}/" for folder in folders))
    wanted = _PROGRAMS if surroundings.is_sandboxed else (*_PROGRAMS, *_HOST_PROGRAMS)
    found = ((name, find_on_path(name, folders)) for name in wanted)
    is_shown = shown if surroundings.is_sandboxed else ("/",)
    return [name for name, path in found if path and os.path.realpath(path).startswith(is_shown)]


def _describe_commands(known: Surroundings) -> str:
    if known.is_sandboxed:
        return "run in a sandbox; all of them share its /tmp, home folder, localhost and background processes"
    return "run on this machine without a sandbox; each needs the user's approval"


def _describe_writable(known: Surroundings) -> str:
    if known.is_planning:
        return "nothing yet, whatever the request: plan mode. Look around, then reply with what you would do and where"
    if not known.is_sandboxed:
        return "what the user may write"
    others = [_shorten(str(path), _ITEMS_BYTES // 2) for path in known.extra_dirs]
    shown = [_shorten(str(path), _ITEMS_BYTES // 2) for path in known.read_dirs]
    readable = f"; only readable: {_join_fitting(shown, _ITEMS_BYTES)}" if shown else ""
    folders = _join_fitting(["the folder", *others], _ITEMS_BYTES)
    return f"{folders}; /tmp and the home folder, which start empty{readable}"


def _describe_network(known: Surroundings) -> str:
    if not known.is_sandboxed:
        return "as on this machine"
    hosts = (
        f"only {_join_fitting([_escape(host) for host in known.allow_net], _ITEMS_BYTES)}" if known.allow_net else ""
    )
    more = (
        "a command that names another host, such as curl or pip install, asks the user to open it"
        if known.can_ask
        else "nobody can open more in this run; the user can start one with --allow-net HOST"
    )
    return f"{hosts or 'off'} for commands, apart from localhost; {more}"


def _describe_time(known: Surroundings) -> str:
    return (
        f"a command is stopped after {known.command_timeout_s:g} s unless it gets timeout_s; servers, watchers and "
        "other long work need background"
    )


def _entry_name(entry: "os.DirEntry[str]") -> str:
    name = entry.name if len(entry.name) <= _NAME_CHARS else f"{entry.name[:_NAME_CHARS]}…"
    try:
        is_folder = entry.is_dir()
    except OSError:
        is_folder = False
    text = _escape(name) + ("/" if is_folder else "")
    return text if _PLAIN_NAME.fullmatch(text) else f'"{text}"'


def _join_fitting(items: Sequence[str], room: int, total: int | None = None) -> str:
    """Join as many items as fit into the bytes, and append the number of the rest."""
    total = len(items) if total is None else total
    kept: list[str] = []
    for item in items:
        rest = total - len(kept) - 1
        text = ", ".join([*kept, item]) + (_more(rest) if rest else "")
        if _size(text) > room:
            break
        kept.append(item)
    rest = total - len(kept)
    return ", ".join(kept) + _more(rest) if rest and kept else ", ".join(kept) or f"{total} names"


def _more(count: int) -> str:
    return f" and {count} more"


def _shorten(name: str, limit: int) -> str:
    """Return a name as data, with its middle left out if it is too long."""
    text = _escape(name)
    data = text.encode()
    if len(data) <= limit:
        return text
    half = limit // 2 - 2
    return f"{data[:half].decode(errors='ignore')}…{data[-half:].decode(errors='ignore')}"


def _escape(text: str) -> str:
    r"""Return a name as data on one line: control characters and invalid bytes as \xNN, no tags."""
    text = text.encode("utf-8", "backslashreplace").decode()
    visible = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return visible.replace("<", "‹").replace(">", "›")


def _render(facts: Mapping[str, str]) -> str:
    lines = [f"{name}: {fact}" for name, fact in facts.items() if fact]
    return "\n".join((f"<{TAG}>", *lines, f"</{TAG}>")) if lines else ""


def _facts(opening: str) -> dict[str, str]:
    return dict(_split(opening.splitlines()))


def _split(lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for line in lines:
        name, colon, fact = line.partition(": ")
        if colon:
            yield name, fact


def _size(text: str) -> int:
    return len(text.encode())
