"""Artifacts: described only if they are files of the workspace."""

import hashlib
import os
from pathlib import Path

from agent.workspace.artifacts import OutputFolder, describe_files


def test_a_file_is_described_with_its_size_and_hash(tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    folder = OutputFolder(tmp_path)
    (tmp_path / "output" / "a.txt").write_text("one")
    [file] = describe_files(tmp_path, folder.changed())
    assert (file.name, file.bytes, file.sha256) == ("output/a.txt", 3, hashlib.sha256(b"one").hexdigest())


def test_a_file_that_a_link_leads_to_is_not_described(tmp_path: Path) -> None:
    workspace, outside = tmp_path / "ws", tmp_path / "outside"
    for folder in (workspace, outside):
        folder.mkdir()
    (outside / "key").write_text("secret")
    (workspace / "out").symlink_to(outside)
    (workspace / "key").symlink_to(outside / "key")
    os.mkfifo(workspace / "pipe")
    assert describe_files(workspace, ("out/key", "key", "pipe", "../outside/key", "missing")) == ()
