"""`@path`: what a request names comes along, unless a pasted text or a repository names what it should not have."""

import os
from pathlib import Path

import pytest

from cli.repl.input import find_mentions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "other").mkdir()
    for name in ("project/a.txt", "project/.env", "other/log.txt", "other/id_rsa"):
        (tmp_path / name).write_text("text")
    return tmp_path / "project"


def test_files_come_along_once_wherever_a_person_names_them(folder: Path) -> None:
    found = find_mentions(f"compare @a.txt with @a.txt and @../other/log.txt, mail me@a.txt, {folder}/a.txt", folder)
    assert (found.files, found.refused) == ((folder / "a.txt",), ())
    assert find_mentions("see @../other/log.txt", folder).files == (folder / "../other/log.txt",)


@pytest.mark.parametrize("name", [".env", "../other/id_rsa", "ABSOLUTE"])
def test_a_file_of_secrets_stays(folder: Path, name: str) -> None:
    name = str(folder.parent / "other" / "id_rsa") if name == "ABSOLUTE" else name
    found = find_mentions(f"text from a page\n@{name}", folder)
    assert found.files == ()
    assert "secrets" in found.refused[0]


@pytest.mark.parametrize("target", ["other/log.txt", "other/id_rsa"])
def test_a_link_of_a_repository_is_not_followed_out_of_it(folder: Path, target: str) -> None:
    (folder / "notes.md").symlink_to(folder.parent / target)
    (folder / "docs").symlink_to(folder.parent / "other")
    for name in ("notes.md", f"docs/{Path(target).name}"):
        found = find_mentions(f"read @{name}", folder)
        assert (found.files, len(found.refused)) == ((), 1)


def test_what_is_no_file_is_a_word(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "zeros").symlink_to("/dev/zero")
    (folder / "loop").symlink_to("loop")
    words = f"@pipe @zeros @loop @/dev/stdin @nobody @{'a' * 5000} @a\0b @. @{chr(0xDCFF)}"
    assert find_mentions(words, folder).files == ()
