"""Files that the user names are never written through a link that a command planted, at whatever moment."""

import os
from pathlib import Path

import pytest

from cli import safe_write
from cli.safe_write import write_user_file


def test_a_file_is_replaced_completely(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a longer text")
    write_user_file(tmp_path / "a", "short", (tmp_path,))
    assert (tmp_path / "a").read_text() == "short"


@pytest.mark.parametrize("name", ["link/a", "file"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    workspace, outside = tmp_path / "ws", tmp_path / "outside"
    for folder in (workspace, outside):
        folder.mkdir()
    (outside / "a").write_text("mine")
    (workspace / "link").symlink_to(outside)
    (workspace / "file").symlink_to(outside / "a")
    with pytest.raises(OSError, match="symbolic link"):
        write_user_file(workspace / name, "evil", (workspace,))
    assert (outside / "a").read_text() == "mine"


def test_a_folder_that_becomes_a_link_after_the_check_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, outside = tmp_path / "ws", tmp_path / "outside"
    (workspace / "out").mkdir(parents=True)
    outside.mkdir()
    (outside / "a").write_text("mine")
    opened = os.open

    def swap_and_open(path: Path, flags: int, mode: int = 0o777) -> int:
        (workspace / "out").rmdir()
        (workspace / "out").symlink_to(outside)
        return opened(path, flags, mode)

    monkeypatch.setattr(safe_write.os, "open", swap_and_open)
    with pytest.raises(OSError, match="symbolic link"):
        write_user_file(workspace / "out" / "a", "evil", (workspace,))
    assert (outside / "a").read_text() == "mine"
