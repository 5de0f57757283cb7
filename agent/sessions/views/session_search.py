"""Searches past sessions: titles, requests and answers, or complete event logs."""

import json
from collections.abc import Iterator
from pathlib import Path

from agent.sessions.store import SessionFolder, SessionStore
from agent.sessions.views.listing import newest_sessions
from agent.sessions.views.session_summary import MAX_RUNS, read_all_runs
from agent.sessions.views.titles import custom_title
from tooling.contract.fast_dataclass import dataclass
from tooling.files.open_regular import open_regular, read_regular

_EXCERPT_CHARS = 200
# Ids and other metadata are not worth searching.
_METADATA_KEYS = frozenset(
    {"v", "type", "ts", "seq", "session_id", "run_id", "step_id", "attempt", "tool_id", "hash", "plan_id"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHit:
    """One matching line; `where` is its origin: a title, a request, an answer, an event of a step."""

    session_id: str
    run_id: str
    where: str
    line: str


class Needle:
    """A text to find, ignoring case; raw JSON can be tested before it is decoded."""

    def __init__(self, text: str) -> None:
        self._folded = text.casefold()
        self._escaped = json.dumps(text, ensure_ascii=False)[1:-1].casefold()
        self._bytes = self._escaped.encode("utf-8", "backslashreplace")

    def may_match(self, data: bytes) -> bool:
        """Whether raw JSON may contain the text once it is decoded."""
        if data.isascii():
            return self._bytes in data.lower()
        # Only outside ASCII does case folding change lengths: Straße matches STRASSE.
        return self._escaped in data.decode("utf-8", "replace").casefold()

    def matching_lines(self, text: str) -> Iterator[str]:
        """Yield an excerpt around the text from each line that contains it."""
        if self._folded not in text.casefold():
            return
        for line in text.splitlines():
            index = line.casefold().find(self._folded)
            if index >= 0:
                yield _excerpt(line.strip(), index - (len(line) - len(line.lstrip())))


def search(store: SessionStore, text: str, *, is_deep: bool = False) -> Iterator[SessionHit]:
    """Yield matching lines, newest session first; `is_deep` searches the complete logs."""
    needle = Needle(text)
    for entry in newest_sessions(store):
        folder = store.folder_for(entry.id)
        for line in needle.matching_lines(custom_title(folder)):
            yield SessionHit(session_id=folder.id, run_id="", where="title", line=line)
        yield from _search_log(folder, needle) if is_deep else _search_runs(folder, needle)


def _search_runs(folder: SessionFolder, needle: Needle) -> Iterator[SessionHit]:
    if not _runs_may_match(folder, needle):
        return
    try:
        runs = read_all_runs(folder).runs
    except OSError:
        return
    for run in reversed(runs):
        for where, text in (("request", run.user), ("answer", run.final)):
            for line in needle.matching_lines(text):
                yield SessionHit(session_id=folder.id, run_id=run.run_id, where=where, line=line)


def _runs_may_match(folder: SessionFolder, needle: Needle) -> bool:
    """Whether the runs may match; if the summary is current and complete, its raw bytes decide."""
    try:
        if folder.summary.stat().st_mtime_ns < folder.events.stat().st_mtime_ns:
            return True
        summary = read_regular(folder.summary)
    except OSError:
        return True
    return needle.may_match(summary) or summary.count(b'"run_id"') >= MAX_RUNS


def _search_log(folder: SessionFolder, needle: Needle) -> Iterator[SessionHit]:
    seen: set[tuple[str, str]] = set()
    for event in _matching_events(folder.events, needle):
        run_id = str(event.get("run_id", ""))
        where = " ".join(str(part) for part in (event.get("step_id"), event.get("type")) if part)
        for line in _matching_lines(event, needle):
            # The same text is often repeated in replies, quotes and summaries; one hit is enough.
            if (run_id, line) not in seen:
                seen.add((run_id, line))
                yield SessionHit(session_id=folder.id, run_id=run_id, where=where, line=line)


def _matching_events(path: Path, needle: Needle) -> Iterator[dict[str, object]]:
    try:
        with open_regular(path) as lines:
            for line in lines:
                if needle.may_match(line) and (event := _parse_object(line)):
                    yield event
    except OSError:
        return


def _parse_object(line: bytes) -> dict[str, object]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _matching_lines(event: dict[str, object], needle: Needle) -> Iterator[str]:
    for key, value in event.items():
        if key not in _METADATA_KEYS:
            for text in _texts(value):
                yield from needle.matching_lines(text)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _excerpt(line: str, index: int) -> str:
    start = max(0, min(index - _EXCERPT_CHARS // 2, len(line) - _EXCERPT_CHARS))
    end = start + _EXCERPT_CHARS
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")
