"""A copy of a folder is complete, and its virtual environment works in its new place."""

import os
from pathlib import Path

import pytest

from agent.sessions.checkpoints import scratch_copy
from agent.sessions.checkpoints.scratch_copy import copy_folder
from agent.vocabulary.errors import InputError


def test_everything_but_pipes_is_copied(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "d" / "empty").mkdir(parents=True)
    (source / "d" / "a").write_text("a")
    (source / "d" / "a").chmod(0o750)
    (source / "link").symlink_to("/nowhere")
    os.mkfifo(source / "pipe")
    assert copy_folder(source, target) == ()
    assert (target / "d" / "a").read_text() == "a"
    assert (target / "d" / "a").stat().st_mode & 0o777 == 0o750
    assert (target / "d" / "empty").is_dir()
    assert (target / "link").readlink() == Path("/nowhere")
    assert not (target / "pipe").exists()


def test_scripts_of_an_environment_name_the_copy(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / ".venv" / "bin").mkdir(parents=True)
    script = source / ".venv" / "bin" / "pytest"
    script.write_text(f"#!{source}/.venv/bin/python\n")
    script.chmod(0o755)
    (source / ".venv" / "editable.pth").write_text(f"{source}/src\n")
    (source / "notes.txt").write_text(f"{source}\n")
    copy_folder(source, target)
    assert (target / ".venv" / "bin" / "pytest").read_text() == f"#!{target}/.venv/bin/python\n"
    assert (target / ".venv" / "editable.pth").read_text() == f"{target}/src\n"
    assert (target / "notes.txt").read_text() == f"{source}\n"
    assert script.read_text() == f"#!{source}/.venv/bin/python\n"


def test_heaps_are_left_out_of_a_folder_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    (source / "web" / "node_modules").mkdir(parents=True)
    (source / "web" / "node_modules" / "big").write_bytes(b"x" * 1000)
    (source / "a").write_bytes(b"x" * 100)
    monkeypatch.setattr(scratch_copy, "MAX_COPY_BYTES", 500)
    assert copy_folder(source, tmp_path / "one") == ("web/node_modules",)
    assert (tmp_path / "one" / "a").exists()
    assert not (tmp_path / "one" / "web" / "node_modules").exists()
    monkeypatch.setattr(scratch_copy, "MAX_COPY_BYTES", 50)
    with pytest.raises(InputError, match="too large to be copied"):
        copy_folder(source, tmp_path / "two")
