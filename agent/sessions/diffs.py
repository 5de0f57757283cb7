"""What a session changed as unified diffs: what a file held before the first change against what after the last."""

from collections.abc import Iterator

from agent.sessions.changes.changes import Made, Span
from agent.sessions.changes.undo import spot_of
from tooling.contract.result import ToolError
from tooling.files.blobs import BlobStore, hash_of
from tooling.files.change_file import as_text
from tooling.files.file_diff import change_of
from tooling.files.pending_write import target

_WHOLE = 1 << 40


def net_diff(span: Span, blobs: BlobStore) -> str:
    """Return the effect of all changes of a file together; where a content is gone, the recorded diffs instead."""
    before = _content(span.before, span, blobs)
    after = _content(span.after, span, blobs)
    is_complete = (before is not None or span.before is None) and (after is not None or span.after is None)
    if span.is_known and is_complete:
        return change_of(span.shown, as_text(before), as_text(after), max_chars=_WHOLE).diff
    return "".join(made.change.diff for made in span.changes)


def step_diffs(made: list[Made]) -> Iterator[str]:
    """Yield the recorded diffs change by change, each under the step that made it."""
    for one in made:
        yield f"# {one.run_id} {one.step_id}: {one.change.path} ({one.change.status})\n{one.change.diff}"


def _content(name: str | None, span: Span, blobs: BlobStore) -> bytes | None:
    """Return the content of a hash: a kept copy, or the file itself while it still holds that."""
    if name is None:
        return None
    kept = blobs.read(name)
    if kept is not None:
        return kept
    try:
        with target(lambda: spot_of(span), makes_folders=False) as file:
            now = file.content()
    except ToolError:
        return None
    return now.data if now is not None and hash_of(now.data) == name else None
