"""The tool apply_patch: both forms, the mistakes of models, and all files or none."""

import difflib
import subprocess
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.tooling.tool_harness import FakeUser, ToolHarness
from tooling.contract.context import ExecCtx
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.secrets import NoSecrets
from tooling.files.blobs import BlobStore
from tooling.files.file_batch import FileBatch
from tooling.files.file_diff import compute_change
from tooling.patch.file_patch import FilePatch
from tooling.patch.hunks import apply_hunks
from tooling.patch.unified import parse_unified
from tooling.patch.v4a import parse_v4a

SOURCE = "import os\n\n\ndef area(width, height):\n    return width * height\n\n\ndef main():\n    print(area(2, 3))\n"
SECRET = "correct-horse-battery"


def v4a(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


async def patch(harness: ToolHarness, text: str) -> ToolResult:
    return await harness.call("apply_patch", patch=text)


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


async def test_one_patch_updates_adds_moves_and_deletes(tmp_path: Path) -> None:
    harness = ToolHarness(tmp_path, approver=FakeUser())
    harness.write("a.py", SOURCE)
    harness.write("old.txt", "gone\n")
    harness.write("b.txt", "one\ntwo\n").chmod(0o755)
    result = await patch(
        harness,
        v4a(
            "*** Update File: a.py",
            "@@ def main():",
            "-    print(area(2, 3))",
            "+    print(area(4, 5))",
            "*** Add File: new/c.txt",
            "+first",
            "+",
            "+third",
            "*** Delete File: old.txt",
            "*** Update File: b.txt",
            "*** Move to: sub/b.txt",
            "@@",
            " one",
            "-two",
            "+2",
        ),
    )
    assert result.content.splitlines() == [
        "Updated a.py: +1 -1 lines.",
        "Added new/c.txt: +3 -0 lines.",
        "Deleted old.txt: +0 -1 lines.",
        "Deleted b.txt: +0 -2 lines.",
        "Added sub/b.txt: +2 -0 lines.",
    ]
    assert contents(harness.root) == {
        "a.py": SOURCE.replace("2, 3", "4, 5"),
        "new/c.txt": "first\n\nthird\n",
        "sub/b.txt": "one\n2\n",
    }
    assert (harness.root / "sub/b.txt").stat().st_mode & 0o777 == 0o755


async def test_a_patch_that_deletes_needs_approval_like_delete_file(harness: ToolHarness) -> None:
    harness.write("a.txt", "x\n")
    refused = await patch(harness, v4a("*** Delete File: a.txt"))
    assert (refused.meta.status, "it deletes a.txt" in refused.content) == ("denied", True)
    assert (harness.root / "a.txt").exists()


@pytest.mark.parametrize("path", ["../out.txt", "/etc/passwd", ".env", ".git/config"])
async def test_paths_outside_the_workspace_are_refused(harness: ToolHarness, path: str) -> None:
    harness.write("a.txt", "x\n")
    text = v4a("*** Update File: a.txt", "-x", "+y", f"*** Add File: {path}", "+x")
    assert (await patch(harness, text)).meta.status == "blocked"
    assert contents(harness.root) == {"a.txt": "x\n"}


async def test_nothing_is_written_if_one_hunk_fails_and_the_error_shows_the_nearest_lines(harness: ToolHarness) -> None:
    harness.write("a.py", SOURCE)
    harness.write("b.txt", "one\n")
    text = v4a(
        "*** Update File: b.txt",
        "-one",
        "+1",
        "*** Update File: a.py",
        "@@",
        " def area(width, height):",
        "-    return width + height",
        "+    return 0",
    )
    result = await patch(harness, text)
    assert result.content == (
        "The hunk for a.py does not match, nothing was changed. Closest match, copy the text exactly from it:\n"
        "4: def area(width, height):\n5:     return width * height\n"
        "Differences (- yours, + the file):\n-    return width + height\n+    return width * height"
    )
    assert contents(harness.root) == {"a.py": SOURCE, "b.txt": "one\n"}


@pytest.mark.parametrize(
    "text",
    [
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n-two\n+2\n*** End Patch\nEOF",
        "```\n*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n\n three\n*** End Patch\n```",
        "*** Update File: a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n*** End Patch",
        "*** Begin Patch\n*** Update File: a.txt\none\n-two\n+2\n\nthree\n*** End Patch\n",
        "*** Begin Patch\n*** Update File: a.txt\n-two  \n+2\n*** End Patch\n",
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n\n three\n",
        "diff --git a/a.txt b/a.txt\nindex 1..2\n--- a/a.txt\n+++ b/a.txt\n@@ -40,9 +41,2 @@\n one\n-two\n+2\n",
        "--- a.txt\t2026-01-01\n+++ a.txt\t2026-01-01\n@@ ... @@\n-two\n+2\n",
        "*** Begin Patch\n--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-two\n+2\n*** End Patch\n",
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
async def test_what_models_really_write_is_accepted(harness: ToolHarness, text: str, ending: str) -> None:
    path = harness.write("a.txt", ending.join(("one", "two", "", "three")))
    result = await patch(harness, text)
    assert result.is_ok, result.content
    assert path.read_bytes().decode() == ending.join(("one", "2", "", "three"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "This is not a patch"),
        ("*** Begin Patch\n*** Update File: a.txt\n-x\n+y", "incomplete"),
        (v4a("*** Update File: a.txt"), "no changed lines"),
        (v4a("*** Add File: b.txt", "no plus"), "starts with +"),
        (v4a("*** Add File: a.txt", "+x"), "exists already"),
        (v4a("*** Update File: none.txt", "-x", "+y"), "does not exist"),
        (v4a("*** Update File: a.txt", "@@ class Missing", "-x", "+y"), "after @@ was not found"),
        (v4a("*** Update File: a.txt", "-x", "+y", "@@", "-x", "+z"), "same lines"),
    ],
)
async def test_a_wrong_patch_is_an_error_with_what_to_do(harness: ToolHarness, text: str, words: str) -> None:
    harness.write("a.txt", "x\n")
    result = await patch(harness, text)
    assert (result.is_ok, words in result.content) == (False, True), result.content
    assert contents(harness.root) == {"a.txt": "x\n"}


async def test_an_anchor_chooses_between_equal_lines(harness: ToolHarness) -> None:
    path = harness.write("a.py", "def a():\n    return 1\n\ndef b():\n    return 1\n")
    assert (await patch(harness, v4a("*** Update File: a.py", "@@ def b():", "-    return 1", "+    return 2"))).is_ok
    assert path.read_text() == "def a():\n    return 1\n\ndef b():\n    return 2\n"


async def test_end_of_file_means_the_last_place(harness: ToolHarness) -> None:
    path = harness.write("a.txt", "x\ny\nx\n")
    assert (await patch(harness, v4a("*** Update File: a.txt", "-x", "+z", "*** End of File"))).is_ok
    assert path.read_text() == "x\ny\nz\n"


async def test_secrets_stay_in_the_file_and_out_of_the_diff(harness: ToolHarness) -> None:
    path = harness.write("a.ini", f"user = me\nkey = {SECRET}\nport = 1\n")
    text = v4a(
        "*** Update File: a.ini", " user = me", "-key = [REDACTED]", "+token = [REDACTED]", "-port = 1", "+port = 2"
    )
    result = await patch(harness, text)
    assert result.is_ok, result.content
    assert path.read_text() == f"user = me\ntoken = {SECRET}\nport = 2\n"
    assert "+token = [REDACTED]" in result.meta.changes[0].diff
    assert SECRET not in str(result)
    unclear = await patch(harness, v4a("*** Update File: a.ini", "-port = 2", "+port = [REDACTED]"))
    assert "stands for a secret" in unclear.content


async def test_a_patch_that_spells_out_another_secret_does_not_match(harness: ToolHarness) -> None:
    other = "ghp_" + "a1B2" * 9
    path = harness.write("a.ini", f"key = {SECRET}\nkey = {other}\n")
    assert (await patch(harness, v4a("*** Update File: a.ini", f"-key = {other}", "+key = none"))).is_ok
    assert path.read_text() == f"key = {SECRET}\nkey = none\n"
    result = await patch(harness, v4a("*** Update File: a.ini", f"-key = {other}", "+key = 1"))
    assert (result.is_ok, SECRET in result.content) == (False, False)


def test_no_line_of_a_private_key_is_in_a_diff_that_starts_inside_it() -> None:
    from tooling.safety.secrets.redact import Redactor

    key = "-----BEGIN PRIVATE KEY-----\naaaa\nbbbb\ncccc\n-----END PRIVATE KEY-----\n"
    change = compute_change("k", f"{key}x\n", f"{key}y\n", mask_lines=Redactor().mask_lines)
    assert change.diff == ("--- a/k\n+++ b/k\n@@ -3,4 +3,4 @@\n [REDACTED]\n [REDACTED]\n [REDACTED]\n-x\n+y\n")


async def test_a_failure_while_writing_restores_the_files_already_written(
    harness: ToolHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.write("a.txt", "a\n")
    harness.write("b.txt", "b\n")
    from tooling.files import pending_write

    real, calls = pending_write.os.rename, []

    def rename(source: str, target: str, **folders: int) -> None:
        calls.append(target)
        if calls == ["a.txt", "b.txt"]:
            raise OSError(5, "Input/output error")
        real(source, target, **folders)

    monkeypatch.setattr(pending_write.os, "rename", rename)
    result = await patch(harness, v4a("*** Update File: a.txt", "-a", "+1", "*** Update File: b.txt", "-b", "+2"))
    assert (result.is_ok, "Input/output error" in result.content) == (False, True)
    assert contents(harness.root) == {"a.txt": "a\n", "b.txt": "b\n"}


def test_old_contents_are_saved_for_undo_and_folders_appear_only_with_the_commit(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("old\n")
    ctx = ExecCtx(user_id=UUID(int=1), task_id=UUID(int=2), working_dir=tmp_path / "ws", blobs_dir=tmp_path / "blobs")
    batch = FileBatch(ctx, NoSecrets())
    batch.write("a.txt", b"new\n")
    batch.write("deep/er/b.txt", b"b\n")
    assert not (tmp_path / "ws" / "deep").exists()
    assert batch.diff().count("@@ -") == 2
    modified, added = batch.commit()
    assert BlobStore(tmp_path / "blobs").read(modified.before or "") == b"old\n"
    assert (added.status, added.before) == ("added", None)


LINES = st.lists(st.sampled_from(["a", "b", "  b", "", "-- x", "++ x", "@@", "c\r", "\\ x", "d"]), max_size=12)
TEXTS = st.tuples(LINES, st.booleans()).map(lambda made: "\n".join(made[0]) + ("\n" if made[0] and made[1] else ""))


@given(TEXTS, TEXTS)
def test_the_diff_of_two_texts_turns_one_into_the_other(before: str, after: str) -> None:
    diff = compute_change("f", before, after).diff
    if diff:
        (file,) = parse_unified(diff.removesuffix("\n").split("\n"))
        assert apply_hunks(before, file, NoSecrets()) == after


def to_v4a(before: str, after: str) -> list[FilePatch]:
    """Write the change of a whole file as one hunk."""
    old, new = before.split("\n")[:-1], after.split("\n")[:-1]
    lines = [line[0] + line[2:] for line in difflib.ndiff(old, new) if line[0] in " -+"]
    return parse_v4a(v4a("*** Update File: f", "@@", *lines, "*** End of File").split("\n"))


WORDS = st.lists(st.sampled_from(["a", "b", "  b", "c", "-- x"]), min_size=1, max_size=10)


@given(WORDS, WORDS)
def test_a_patch_of_the_whole_file_turns_one_text_into_the_other(old: list[str], new: list[str]) -> None:
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    if before != after:
        (file,) = to_v4a(before, after)
        assert apply_hunks(before, file, NoSecrets()) == after


@settings(examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TEXTS, min_size=2, max_size=4), st.data())
async def test_nothing_is_written_if_any_hunk_fails(
    harness: ToolHarness, texts: list[str], data: st.DataObject
) -> None:
    names = [f"{number}.txt" for number in range(len(texts))]
    sections = ["".join((f"*** Update File: {name}\n", "-unique line\n+changed\n")) for name in names]
    broken = data.draw(st.integers(0, len(texts) - 1))
    for number, (name, text) in enumerate(zip(names, texts, strict=True)):
        harness.write(name, text if number == broken else f"unique line\n{text}")
    before = contents(harness.root)
    result = await patch(harness, v4a(*"".join(sections).splitlines()))
    assert not result.is_ok
    assert contents(harness.root) == before


def test_git_renames_new_and_deleted_files_are_understood(tmp_path: Path) -> None:
    def git(*args: str) -> str:
        command = ("git", "-c", "user.name=a", "-c", "user.email=a@b", *args)
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "b.txt").write_text("x\n")
    git("add", ".")
    git("commit", "-qm", "x")
    git("mv", "a.txt", "ä c.txt")
    git("rm", "-q", "b.txt")
    (tmp_path / "d.txt").write_text("new")
    (tmp_path / "empty.txt").write_text("")
    git("add", ".")
    found = parse_unified(git("diff", "--cached", "-M").removesuffix("\n").split("\n"))
    assert sorted((file.kind, file.path, file.move_to, file.content) for file in found) == [
        ("add", "d.txt", None, "new"),
        ("add", "empty.txt", None, ""),
        ("delete", "b.txt", None, ""),
        ("update", "a.txt", "ä c.txt", ""),
    ]


def test_two_hunks_for_the_same_lines_are_an_error() -> None:
    (file,) = parse_unified(["--- a/f", "+++ b/f", "@@ -1 +1 @@", "-a", "+b", "@@ -1 +1 @@", "-a", "+c"])
    with pytest.raises(ToolError, match="same lines"):
        apply_hunks("a\n", file, NoSecrets())
