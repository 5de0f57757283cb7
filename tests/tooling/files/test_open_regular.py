"""Tests of opening regular files."""

import os
from pathlib import Path

import pytest

from tooling.files.open_regular import NotRegularFile, open_fd

CREATE = os.O_RDWR | os.O_CREAT


def test_a_missing_file_is_created_and_an_existing_one_opened(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    for _ in range(2):
        os.close(open_fd(path, CREATE))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("text")
    (tmp_path / "link").symlink_to("real")
    fd = open_fd(tmp_path / "link", CREATE)
    assert os.read(fd, 9) == b"text"
    os.close(fd)


def test_nothing_is_created_where_a_dangling_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotRegularFile):
        open_fd(tmp_path / "link", CREATE)
    assert not (tmp_path / "elsewhere").exists()
