"""Undo restores the original files after any sequence of changes."""

import tempfile
from pathlib import Path
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from agent.protocol.envelope import Envelope
from agent.protocol.events import Event, FilesChanged, RunStarted
from agent.sessions.changes.changes import collect_changes, group_by_file
from agent.sessions.changes.restore import NOT_SAVED
from agent.sessions.changes.undo import KEPT_FOLDER, PERHAPS_OTHERS, UndoResult, undo
from tests.examples import examples
from tooling.contract.context import ExecCtx
from tooling.contract.result import FileChange
from tooling.files.blobs import BlobStore, content_hash
from tooling.files.change_file import change_file

NAMES = st.sampled_from(["a", "b", "d/a", "d/e/b"])
CONTENT = st.one_of(st.none(), st.binary(max_size=6))
CHANGES = st.lists(st.tuples(NAMES, CONTENT, st.sampled_from(["s1", "s2"])), max_size=12)


def state(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode)
        for path in root.rglob("*")
        if path.is_file()
    }


def envelope(seq: int, event: Event, step: str | None = None) -> Envelope:
    return Envelope(seq=seq, ts="", session_id="s", run_id="r", event=event, step_id=step, attempt=1 if step else None)


def started(root: Path) -> RunStarted:
    return RunStarted(model="", planner_model="", cwd=str(root), workspace="", backend="", approval_mode="", tools=())


@examples(60)
@given(st.dictionaries(NAMES, st.binary(max_size=6), max_size=4), CHANGES)
def test_undoing_everything_restores_every_file(
    files: dict[str, bytes], changes: list[tuple[str, bytes | None, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, blobs = Path(folder).resolve() / "ws", Path(folder) / "blobs"
        root.mkdir()
        for name, data in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(data)
        before = state(root)
        ctx = ExecCtx(user_id=UUID(int=1), task_id=UUID(int=2), working_dir=root, blobs_dir=blobs)
        log = [envelope(1, started(root))]
        for number, (name, data, step) in enumerate(changes, 2):
            if data is None and not (root / name).exists():
                continue
            change = change_file(name, ctx, lambda _, __, data=data: data, makes_folders=True)
            log.append(envelope(number, FilesChanged(changes=(change,)), step))
        changed = group_by_file(collect_changes(log))
        undone = undo(changed, BlobStore(blobs), cwd=root, is_forced=False, redact=str)
        assert undone.refused == ()
        assert state(root) == before


def test_a_step_without_a_run_means_the_newest_run_that_has_it(tmp_path: Path) -> None:
    def changed(path: str) -> FilesChanged:
        return FilesChanged(changes=(FileChange(path=path, status="added", after="x"),))

    log = [
        Envelope(seq=n, ts="", session_id="s", run_id=run, event=event, step_id=step, attempt=1 if step else None)
        for n, (run, event, step) in enumerate(
            [
                ("r1", started(tmp_path), None),
                ("r1", changed("a"), "s1"),
                ("r1", changed("b"), "s2"),
                ("r2", started(tmp_path / "other"), None),
                ("r2", changed("c"), "s1"),
            ]
        )
    ]
    assert [str(recorded.path) for recorded in collect_changes(log, step="s1")] == [str(tmp_path / "other" / "c")]
    assert [recorded.change.path for recorded in collect_changes(log, step="s2")] == ["b"]
    assert [recorded.change.path for recorded in collect_changes(log, run="r1")] == ["a", "b"]
    assert [recorded.change.path for recorded in collect_changes(log, run="r1", step="s1")] == ["a"]
    assert collect_changes(log, step="nope") == []


def test_changes_without_hashes_are_not_undone(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("now")
    log = [
        envelope(1, started(tmp_path)),
        envelope(2, FilesChanged(changes=(FileChange(path="a", status="modified", diff="-x\n"),)), "s1"),
    ]
    undone = undo(
        group_by_file(collect_changes(log)), BlobStore(tmp_path / "blobs"), cwd=tmp_path, is_forced=True, redact=str
    )
    assert undone.refused == (NOT_SAVED.format(path="a"),)
    assert (tmp_path / "a").read_text() == "now"


def test_an_undo_says_if_another_step_may_have_made_the_change(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path / "blobs")
    (tmp_path / "a").write_text("new")
    added = FileChange(path="a", status="added", after=blobs.put(b"new"), after_mode=0o644)
    changed = FilesChanged(changes=(added,), command_id="c1", overlaps=("s2",))
    log = [envelope(1, started(tmp_path)), envelope(2, changed, "s1")]
    files = group_by_file(collect_changes(log, step="s1"))
    undone = undo(files, blobs, cwd=tmp_path, is_forced=False, redact=str)
    assert undone.notes == (PERHAPS_OTHERS.format(path="a", steps="s2"),)
    assert not (tmp_path / "a").exists()


def test_a_folder_with_something_else_in_it_is_kept(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "mine").touch()
    empty = content_hash(b"")
    folder = FileChange(path="d", status="added", after=empty, kind="folder", after_mode=0o755)
    log = [envelope(1, started(tmp_path)), envelope(2, FilesChanged(changes=(folder,), command_id="c1"), "s1")]
    files = group_by_file(collect_changes(log))
    undone = undo(files, BlobStore(tmp_path / "blobs"), cwd=tmp_path, is_forced=False, redact=str)
    assert undone == UndoResult(notes=(KEPT_FOLDER.format(path="d"),))
