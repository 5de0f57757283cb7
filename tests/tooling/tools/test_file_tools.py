"""Reading, writing and editing files as a model does it."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.tooling.tool_harness import ToolHarness
from tooling.files.file_diff import MAX_DIFF_CHARS, compute_change


async def test_a_file_is_written_with_its_folders_and_read_back(place: ToolHarness) -> None:
    made = await place.call("write_file", path="a/b/c.txt", content="one\ntwo\n")
    assert made.content == "Created a/b/c.txt: 8 bytes, +2 -0 lines."
    assert (await place.call("read_file", path="a/b/c.txt")).content == "one\ntwo\n"


async def test_a_change_comes_with_its_diff(place: ToolHarness) -> None:
    place.write("a.txt", "".join(f"{n}\n" for n in range(1, 21)))
    result = await place.call("edit_file", path="a.txt", old_text="10\n", new_text="ten\nTEN\n")
    (change,) = result.meta.changes
    assert (change.path, change.status, change.added_lines, change.deleted_lines) == ("a.txt", "modified", 2, 1)
    assert change.diff == "--- a/a.txt\n+++ b/a.txt\n@@ -7,7 +7,8 @@\n 7\n 8\n 9\n-10\n+ten\n+TEN\n 11\n 12\n 13\n"


async def test_secrets_in_diffs_are_masked(place: ToolHarness) -> None:
    result = await place.call("write_file", path="a.txt", content="correct-horse-battery\n")
    assert result.meta.changes[0].diff.endswith("+[REDACTED]\n")
    assert (place.root / "a.txt").read_text() == "correct-horse-battery\n"


async def test_a_mask_is_never_written_over_the_secret_it_stands_for(place: ToolHarness) -> None:
    path = place.write("settings.ini", "user = me\nkey = correct-horse-battery\n")
    seen = (await place.call("read_file", path="settings.ini")).content
    assert "[REDACTED]" in seen
    refused = await place.call("write_file", path="settings.ini", content=seen.replace("me", "you"))
    assert (refused.meta.status, "edit_file" in refused.content) == ("error", True)
    assert "correct-horse-battery" in path.read_text()
    assert (await place.call("edit_file", path="settings.ini", old_text="me", new_text="you")).is_ok


def test_a_huge_diff_is_bounded_and_still_counts() -> None:
    change = compute_change("a", "x\n" * 50_000, "y\n" * 60_000)
    assert (change.added_lines, change.deleted_lines) == (60_000, 50_000)
    assert len(change.diff) < MAX_DIFF_CHARS + 100


async def test_writing_keeps_the_mode_and_leaves_no_litter(place: ToolHarness) -> None:
    path = place.write("run.sh", "old")
    path.chmod(0o755)
    await place.call("write_file", path="run.sh", content="new")
    assert path.stat().st_mode & 0o777 == 0o755
    assert [entry.name for entry in place.root.iterdir()] == ["run.sh"]


async def test_writing_through_a_link_changes_its_target(place: ToolHarness) -> None:
    real = place.write("real.txt", "old")
    (place.root / "alias.txt").symlink_to("real.txt")
    await place.call("write_file", path="alias.txt", content="new")
    assert real.read_text() == "new"
    assert (place.root / "alias.txt").is_symlink()


async def test_a_text_that_stands_there_twice_needs_a_decision(place: ToolHarness) -> None:
    path = place.write("a.py", "x = 1\ny = 2\nx = 1\n")
    twice = await place.call("edit_file", path="a.py", old_text="x = 1", new_text="x = 3")
    assert (twice.exit_code, "occurs 2 times" in twice.content) == (1, True)
    assert path.read_text() == "x = 1\ny = 2\nx = 1\n"
    everywhere = await place.call("edit_file", path="a.py", old_text="x = 1", new_text="x = 3", replace_all=True)
    assert everywhere.content == "Edited a.py in 2 places: +2 -2 lines."
    assert path.read_text() == "x = 3\ny = 2\nx = 3\n"


async def test_a_text_that_is_nearly_right_is_shown_where_it_is(place: ToolHarness) -> None:
    place.write("a.py", "import os\n\ndef area(width, height):\n    return width * height\n")
    result = await place.call(
        "edit_file", path="a.py", old_text="def area(w, height):\n  return width * height", new_text="x"
    )
    assert result.exit_code == 1
    assert "3: def area(width, height):\n4:     return width * height" in result.content


async def test_only_white_space_wrong_is_said(place: ToolHarness) -> None:
    place.write("a.py", "def f():\n\treturn 1\n")
    result = await place.call("edit_file", path="a.py", old_text="def f():\n    return 1", new_text="x")
    assert "only white space differs" in result.content


@pytest.mark.parametrize(
    ("old", "new", "words"), [("", "x", "old_text is empty"), ("a", "a", "the same"), ("zzz", "x", "not found")]
)
async def test_edits_that_make_no_sense_are_errors(place: ToolHarness, old: str, new: str, words: str) -> None:
    place.write("a.txt", "a\n")
    result = await place.call("edit_file", path="a.txt", old_text=old, new_text=new)
    assert (result.exit_code, words in result.content) == (1, True)


async def test_windows_lines_and_foreign_bytes_stay_as_they_are(place: ToolHarness) -> None:
    path = place.write("a.txt", b"one\r\ntwo\r\n\xff\r\n")
    result = await place.call("edit_file", path="a.txt", old_text="one\ntwo", new_text="1\n2")
    assert result.is_ok
    assert path.read_bytes() == b"1\r\n2\r\n\xff\r\n"


async def test_long_files_are_read_page_by_page(place: ToolHarness) -> None:
    place.write("long.txt", "".join(f"line {n}\n" for n in range(1, 5001)))
    first = await place.call("read_file", path="long.txt")
    assert first.content.endswith("line 2000\n\n[lines 1-2000 of 5000; go on with offset=2001]")
    last = await place.call("read_file", path="long.txt", offset=4999, limit=10)
    assert last.content == "line 4999\nline 5000\n"
    beyond = await place.call("read_file", path="long.txt", offset=6000)
    assert beyond.content == "long.txt has 5000 lines; offset 6000 is beyond its end."


async def test_one_endless_line_is_cut(place: ToolHarness) -> None:
    place.write("min.js", "x" * 200_000)
    result = await place.call("read_file", path="min.js")
    assert "line 1 was cut" in result.content
    assert 50_000 <= len(result.content) < 50_200


async def test_numbers_in_quotes_and_nulls_are_understood(place: ToolHarness) -> None:
    place.write("a.txt", "1\n2\n3\n")
    assert (await place.call("read_file", path="a.txt", offset="2", limit=None)).content == "2\n3\n"


async def test_an_empty_file_is_said_to_be_empty(place: ToolHarness) -> None:
    place.write("a.txt", "")
    assert (await place.call("read_file", path="a.txt")).content == "(empty file)"


async def test_what_is_no_text_file_is_refused_without_waiting(place: ToolHarness) -> None:
    os.mkfifo(place.root / "pipe")
    place.write("image.png", b"\x89PNG\0\0")
    async with asyncio.timeout(5):
        pipe = await place.call("read_file", path="pipe")
        into = await place.call("write_file", path="pipe", content="x")
        binary = await place.call("read_file", path="image.png")
        folder = await place.call("read_file", path=".")
    assert pipe.content == "pipe is not a regular file."
    assert into.content == "pipe is not a regular file and cannot be written."
    assert binary.content.startswith("image.png is a binary file")
    assert folder.content == ". is a directory; use list_directory."


async def test_a_half_character_cannot_be_stored(place: ToolHarness) -> None:
    result = await place.call("write_file", path="a.txt", content="\ud83d")
    assert (result.exit_code, "half character" in result.content) == (1, True)
    assert list(place.root.iterdir()) == []


async def test_a_folder_is_listed_folders_first(place: ToolHarness) -> None:
    place.write("b.txt", "12345")
    place.write("src/x.py", "")
    place.write("node_modules/x.js", "")
    place.write(".git/config", "")
    (place.root / "alias").symlink_to("b.txt")
    assert (await place.call("list_directory")).content == "src/\nalias -> b.txt\nb.txt (5 bytes)"
    assert (
        await place.call("list_directory", path="nope")
    ).content == "nope does not exist; look with list_directory or find_files."
    assert (await place.call("list_directory", path="b.txt")).content == "b.txt is a file; use read_file."


async def test_a_large_folder_is_cut_and_says_so(place: ToolHarness) -> None:
    for number in range(250):
        place.write(f"many/{number:03}", "")
    lines = (await place.call("list_directory", path="many")).content.splitlines()
    assert (len(lines), lines[-1][:20]) == (201, "[200 of 250 entries;")


async def test_an_unwritable_place_is_an_error_in_words(place: ToolHarness) -> None:
    place.write("file", "x")
    result = await place.call("write_file", path="file/below", content="x")
    assert (result.exit_code, "cannot be written" in result.content) == (1, True)


def test_a_change_without_difference_is_empty() -> None:
    change = compute_change("a", "same\n", "same\n")
    assert (change.added_lines, change.deleted_lines, change.diff) == (0, 0, "")


def test_a_missing_last_line_feed_is_visible() -> None:
    assert compute_change("a", "one", "two").diff == (
        "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+two\n\\ No newline at end of file\n"
    )


async def test_added_folders_are_open_to_tools(place: ToolHarness, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    ctx = place.ctx(extra_dirs=(more,))
    args = {"path": str(more / "a.txt"), "content": "x"}
    assert (await place.executor.call_tool("write_file", args, ctx)).is_ok
    assert (await place.executor.call_tool("write_file", args, place.ctx())).meta.status == "blocked"
