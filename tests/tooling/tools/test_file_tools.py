"""The file tools: read, write, edit and list."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.tooling.images.sample_images import png
from tests.tooling.tool_harness import ToolHarness
from tooling.files.blobs import BlobStore
from tooling.files.file_diff import MAX_DIFF_CHARS, compute_change
from tooling.files.resolve import missing_file
from tooling.safety.secrets.nearest_match import ONLY_WHITESPACE_DIFFERS


async def test_a_new_file_is_created_with_its_folders_and_read_back(harness: ToolHarness) -> None:
    created = await harness.call("write_file", path="a/b/c.txt", content="one\ntwo\n")
    assert created.content == "Created a/b/c.txt: 8 bytes, +2 -0 lines."
    assert (await harness.call("read_file", path="a/b/c.txt")).content == "one\ntwo\n"


async def test_an_edit_returns_its_diff(harness: ToolHarness) -> None:
    harness.write("a.txt", "".join(f"{n}\n" for n in range(1, 21)))
    result = await harness.call("edit_file", path="a.txt", old_text="10\n", new_text="ten\nTEN\n")
    (change,) = result.meta.changes
    assert (change.path, change.status, change.added_lines, change.deleted_lines) == ("a.txt", "modified", 2, 1)
    assert change.diff == "--- a/a.txt\n+++ b/a.txt\n@@ -7,7 +7,8 @@\n 7\n 8\n 9\n-10\n+ten\n+TEN\n 11\n 12\n 13\n"


async def test_secrets_in_diffs_are_masked(harness: ToolHarness) -> None:
    result = await harness.call("write_file", path="a.txt", content="correct-horse-battery\n")
    assert result.meta.changes[0].diff.endswith("+[REDACTED]\n")
    assert (harness.root / "a.txt").read_text() == "correct-horse-battery\n"


async def test_a_redacted_secret_is_not_overwritten_by_its_mask(harness: ToolHarness) -> None:
    path = harness.write("settings.ini", "user = me\nkey = correct-horse-battery\n")
    seen = (await harness.call("read_file", path="settings.ini")).content
    assert "[REDACTED]" in seen
    written = await harness.call("write_file", path="settings.ini", content=seen.replace("me", "you"))
    assert written.is_ok, written.content
    assert path.read_text() == "user = you\nkey = correct-horse-battery\n"
    unclear = await harness.call("write_file", path="settings.ini", content="a = [REDACTED]\nb = [REDACTED]\n")
    assert (unclear.meta.status, "stands for a secret" in unclear.content) == ("error", True)
    assert "correct-horse-battery" in path.read_text()


async def test_an_edit_of_a_masked_line_keeps_the_secret(harness: ToolHarness) -> None:
    path = harness.write("settings.ini", "user = me\nkey = correct-horse-battery\n")
    masked = {"old_text": "me\nkey = [REDACTED]", "new_text": "you\ntoken = [REDACTED]"}
    result = await harness.call("edit_file", path="settings.ini", **masked)
    assert result.content == "Edited settings.ini in 1 place: +2 -2 lines."
    assert path.read_text() == "user = you\ntoken = correct-horse-battery\n"
    assert "+token = [REDACTED]" in result.meta.changes[0].diff
    missing = await harness.call("edit_file", path="settings.ini", old_text="x = [REDACTED]", new_text="y")
    assert "copy its line exactly" in missing.content
    assert "correct-horse-battery" not in missing.content


async def test_text_inside_a_secret_is_not_replaced(harness: ToolHarness) -> None:
    path = harness.write("settings.ini", "animal = horse\nkey = correct-horse-battery\n")
    result = await harness.call("edit_file", path="settings.ini", old_text="horse", new_text="cow", replace_all=True)
    assert result.content == "Edited settings.ini in 1 place: +1 -1 lines."
    assert path.read_text() == "animal = cow\nkey = correct-horse-battery\n"


async def test_several_edits_are_made_in_order_or_not_at_all(harness: ToolHarness) -> None:
    path = harness.write("a.txt", "one\ntwo\ntwo\n")
    edits = [
        {"old_text": "one", "new_text": "1"},
        {"old_text": "1\ntwo", "new_text": "1\n2"},
        {"old_text": "two", "new_text": "zwei"},
    ]
    assert (
        await harness.call("edit_file", path="a.txt", edits=edits)
    ).content == "Edited a.txt in 3 places: +3 -3 lines."
    assert path.read_text() == "1\n2\nzwei\n"
    wrong = [{"old_text": "1", "new_text": "x"}, {"old_text": "missing", "new_text": "y"}]
    failed = await harness.call("edit_file", path="a.txt", edits=wrong)
    assert failed.content.startswith("Edit 2 of 2 failed, nothing was changed: old_text was not found in a.txt.")
    assert path.read_text() == "1\n2\nzwei\n"


def test_a_huge_diff_is_truncated_but_counts_all_lines() -> None:
    change = compute_change("a", "x\n" * 50_000, "y\n" * 60_000)
    assert (change.added_lines, change.deleted_lines) == (60_000, 50_000)
    assert len(change.diff) < MAX_DIFF_CHARS + 100


async def test_writing_preserves_the_mode_and_leaves_no_temporary_files(harness: ToolHarness) -> None:
    path = harness.write("run.sh", "old")
    path.chmod(0o755)
    await harness.call("write_file", path="run.sh", content="new")
    assert path.stat().st_mode & 0o777 == 0o755
    assert [entry.name for entry in harness.root.iterdir()] == ["run.sh"]


async def test_writing_to_a_link_changes_its_target(harness: ToolHarness) -> None:
    real = harness.write("real.txt", "old")
    (harness.root / "alias.txt").symlink_to("real.txt")
    await harness.call("write_file", path="alias.txt", content="new")
    assert real.read_text() == "new"
    assert (harness.root / "alias.txt").is_symlink()


async def test_an_ambiguous_edit_needs_replace_all(harness: ToolHarness) -> None:
    path = harness.write("a.py", "x = 1\ny = 2\nx = 1\n")
    twice = await harness.call("edit_file", path="a.py", old_text="x = 1", new_text="x = 3")
    assert (twice.exit_code, "occurs 2 times" in twice.content) == (1, True)
    assert path.read_text() == "x = 1\ny = 2\nx = 1\n"
    everywhere = await harness.call("edit_file", path="a.py", old_text="x = 1", new_text="x = 3", replace_all=True)
    assert everywhere.content == "Edited a.py in 2 places: +2 -2 lines."
    assert path.read_text() == "x = 3\ny = 2\nx = 3\n"


async def test_a_failed_edit_shows_the_most_similar_lines(harness: ToolHarness) -> None:
    harness.write("a.py", "import os\n\ndef area(width, height):\n    return width * height\n")
    result = await harness.call(
        "edit_file", path="a.py", old_text="def area(w, height):\n  return width * height", new_text="x"
    )
    assert result.exit_code == 1
    assert "3: def area(width, height):\n4:     return width * height" in result.content


async def test_a_failed_edit_says_if_only_white_space_differs(harness: ToolHarness) -> None:
    harness.write("a.py", "def f():\n\treturn 1\n")
    result = await harness.call("edit_file", path="a.py", old_text="def f():\n    return 1", new_text="x")
    assert ONLY_WHITESPACE_DIFFERS in result.content


@pytest.mark.parametrize(
    ("old", "new", "words"), [("", "x", "old_text is empty"), ("a", "a", "the same"), ("zzz", "x", "not found")]
)
async def test_an_invalid_edit_is_an_error(harness: ToolHarness, old: str, new: str, words: str) -> None:
    harness.write("a.txt", "a\n")
    result = await harness.call("edit_file", path="a.txt", old_text=old, new_text=new)
    assert (result.exit_code, words in result.content) == (1, True)


async def test_crlf_and_invalid_utf8_are_preserved(harness: ToolHarness) -> None:
    path = harness.write("a.txt", b"one\r\ntwo\r\n\xff\r\n")
    result = await harness.call("edit_file", path="a.txt", old_text="one\ntwo", new_text="1\n2")
    assert result.is_ok
    assert path.read_bytes() == b"1\r\n2\r\n\xff\r\n"


async def test_a_long_file_is_read_page_by_page(harness: ToolHarness) -> None:
    harness.write("long.txt", "".join(f"line {n}\n" for n in range(1, 5001)))
    first = await harness.call("read_file", path="long.txt")
    assert first.content.endswith(
        "line 2000\n\n[lines 1-2000 of 5000, 48893 bytes in the file; continue with offset=2001]"
    )
    last = await harness.call("read_file", path="long.txt", offset=4999, limit=10)
    assert last.content == "line 4999\nline 5000\n"
    beyond = await harness.call("read_file", path="long.txt", offset=6000)
    assert beyond.content == "long.txt has 5000 lines; offset 6000 is beyond its end."


@pytest.mark.parametrize(
    "ranges", [{"offset": 3}, {"offset": 4, "limit": 1}, {"offset": 1, "limit": 1, "more": ["k.txt:3-4"]}]
)
async def test_a_page_that_begins_inside_a_private_key_is_masked(
    harness: ToolHarness, ranges: dict[str, object]
) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQ\nxyzABC\n-----END PRIVATE KEY-----"
    harness.write("k.txt", f"first\n{key}\nlast\n")
    seen = (await harness.call("read_file", path="k.txt", **ranges)).content
    assert "MIIEvQ" not in seen and "xyzABC" not in seen
    assert "[REDACTED]" in seen
    assert (await harness.call("read_file", path="k.txt", offset=6)).content == "last\n"


async def test_several_files_and_ranges_are_read_in_one_call(harness: ToolHarness) -> None:
    harness.write("long.txt", "".join(f"line {n}\n" for n in range(1, 101)))
    harness.write("b.txt", "b\n")
    more = ["b.txt", "missing.txt", "long.txt:100"]
    result = await harness.call("read_file", path="long.txt", offset=2, limit=2, more=more)
    assert (result.is_ok, result.display) == (True, "Read 3 of 4 files")
    assert result.content == (
        "==> long.txt (lines 2-3 of 100, 792 bytes) <==\nline 2\nline 3\n"
        "[lines 2-3 of 100, 792 bytes in the file; continue with offset=4]\n\n"
        "==> b.txt (lines 1-1 of 1, 2 bytes) <==\nb\n\n"
        f"==> missing.txt <==\n{missing_file('missing.txt')}\n\n"
        "==> long.txt (lines 100-100 of 100, 792 bytes) <==\nline 100"
    )
    assert (await harness.call("read_file", path="b.txt", more=["../x"])).meta.status == "blocked"


async def test_a_huge_file_leaves_room_for_the_others_of_a_call(harness: ToolHarness) -> None:
    harness.write("huge.txt", "word\n" * 40_000)
    harness.write("b.txt", "the end\n")
    result = await harness.call("read_file", path="huge.txt", more=["b.txt"])
    assert result.content.endswith("the end")
    assert "of 40000, 200000 bytes" in result.content
    assert len(result.content) < 50_000


async def test_a_very_long_line_is_truncated(harness: ToolHarness) -> None:
    harness.write("min.js", "x" * 200_000)
    result = await harness.call("read_file", path="min.js")
    assert "line 1 was cut" in result.content
    assert 50_000 <= len(result.content) < 50_200


async def test_quoted_numbers_and_nulls_are_accepted(harness: ToolHarness) -> None:
    harness.write("a.txt", "1\n2\n3\n")
    assert (await harness.call("read_file", path="a.txt", offset="2", limit=None)).content == "2\n3\n"


async def test_an_empty_file_is_reported_as_empty(harness: ToolHarness) -> None:
    harness.write("a.txt", "")
    assert (await harness.call("read_file", path="a.txt")).content == "(empty file)"


async def test_fifos_binaries_and_folders_are_refused_without_blocking(harness: ToolHarness) -> None:
    os.mkfifo(harness.root / "pipe")
    harness.write("image.png", b"\x89PNG\0\0")
    async with asyncio.timeout(5):
        pipe = await harness.call("read_file", path="pipe")
        write_to_pipe = await harness.call("write_file", path="pipe", content="x")
        binary = await harness.call("read_file", path="image.png")
        folder = await harness.call("read_file", path=".")
    assert pipe.content == "pipe is not a regular file."
    assert write_to_pipe.content == "pipe is not a regular file and cannot be written."
    assert binary.content.startswith("image.png is a binary file")
    assert folder.content == ". is a directory; use list_directory."


async def test_an_unpaired_surrogate_cannot_be_written(harness: ToolHarness) -> None:
    result = await harness.call("write_file", path="a.txt", content="\ud83d")
    assert (result.exit_code, "unpaired surrogate" in result.content) == (1, True)
    assert list(harness.root.iterdir()) == []


async def test_a_listing_has_folders_first_and_skips_git_and_node_modules(harness: ToolHarness) -> None:
    harness.write("b.txt", "12345")
    harness.write("src/x.py", "")
    harness.write("node_modules/x.js", "")
    harness.write(".git/config", "")
    (harness.root / "alias").symlink_to("b.txt")
    assert (await harness.call("list_directory")).content == "src/\nalias -> b.txt\nb.txt (5 bytes)"
    assert (await harness.call("list_directory", path="nope")).content == missing_file("nope")
    assert (await harness.call("list_directory", path="b.txt")).content == "b.txt is a file; use read_file."


async def test_a_long_listing_is_truncated_with_a_notice(harness: ToolHarness) -> None:
    for number in range(250):
        harness.write(f"many/{number:03}", "")
    lines = (await harness.call("list_directory", path="many")).content.splitlines()
    assert (len(lines), lines[-1][:20]) == (201, "[200 of 250 entries;")


async def test_a_path_through_a_file_cannot_be_written(harness: ToolHarness) -> None:
    harness.write("file", "x")
    result = await harness.call("write_file", path="file/below", content="x")
    assert (result.exit_code, "cannot be written" in result.content) == (1, True)


def test_identical_contents_have_an_empty_diff() -> None:
    change = compute_change("a", "same\n", "same\n")
    assert (change.added_lines, change.deleted_lines, change.diff) == (0, 0, "")


def test_a_missing_final_newline_is_shown_in_the_diff() -> None:
    assert compute_change("a", "one", "two").diff == (
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+two\n\\ No newline at end of file\n"
    )


async def test_tools_can_write_to_extra_folders(harness: ToolHarness, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    ctx = harness.ctx(extra_dirs=(extra,))
    args = {"path": str(extra / "a.txt"), "content": "x"}
    assert (await harness.executor.call_tool("write_file", args, ctx)).is_ok
    assert (await harness.executor.call_tool("write_file", args, harness.ctx())).meta.status == "blocked"


async def test_reading_an_image_shows_it_whatever_its_name(harness: ToolHarness) -> None:
    (harness.root / "plot.txt").write_bytes(png(40, 30))
    result = await harness.call("read_file", path="plot.txt")
    (image,) = result.images
    assert (result.content, result.display) == (image.description, "Read plot.txt [image plot.txt 40x30]")
    assert BlobStore(harness.blobs).read(image.sha256) == png(40, 30)


async def test_reading_a_damaged_image_says_so(harness: ToolHarness) -> None:
    (harness.root / "plot.png").write_bytes(png(40, 30)[:50])
    result = await harness.call("read_file", path="plot.png")
    assert (result.is_ok, result.content) == (
        False,
        "plot.png cannot be shown: the image is damaged or incomplete.",
    )


async def test_images_and_texts_are_read_in_one_call(harness: ToolHarness) -> None:
    harness.write("a.txt", "one\n")
    (harness.root / "plot.png").write_bytes(png(40, 30))
    result = await harness.call("read_file", path="plot.png", more=["a.txt"])
    (image,) = result.images
    assert result.content == f"==> plot.png <==\n{image.description}\n\n==> a.txt (lines 1-1 of 1, 4 bytes) <==\none"
