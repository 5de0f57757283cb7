"""File tools run outside the sandbox: they too leave the agent's folders and start-up files alone."""

import time
from pathlib import Path
from uuid import UUID

import pytest

from tooling.contract.context import ExecCtx
from tooling.files.resolve import resolve_readable, resolve_writable
from tooling.files.workspace_paths import PathRefused
from tooling.tools.line_search import Search, search_by_walking


def context(workspace: Path, home: Path) -> ExecCtx:
    own = (home / ".local/share/agent", home / ".config/agent")
    return ExecCtx(
        user_id=UUID(int=1),
        task_id=UUID(int=2),
        working_dir=workspace,
        own_dirs=own,
        homes=(home,),
        outputs_dir=own[0] / "sessions/s/outputs",
    )


@pytest.mark.parametrize("above", ["", ".."], ids=["home", "folder above"])
@pytest.mark.parametrize("name", [".zshenv", ".config/systemd/x.service", ".local/bin/ls", "bin/ls", "a/../.bashrc"])
def test_start_up_files_in_a_home_folder_are_not_written(tmp_path: Path, name: str, above: str) -> None:
    home = tmp_path / "u"
    (home / "a").mkdir(parents=True)
    ctx = context((home / above).resolve(), home)
    with pytest.raises(PathRefused, match="when they start"):
        resolve_writable(str(home / name), ctx)
    assert resolve_readable(str(home / name), ctx)
    assert resolve_writable(str(home / "notes.txt"), ctx)


@pytest.mark.parametrize("name", [".config/agent/config.toml", ".local/share/agent/MEMORY.md", "link/config.toml"])
def test_the_agents_own_folders_are_neither_read_nor_written(tmp_path: Path, name: str) -> None:
    (tmp_path / ".config/agent").mkdir(parents=True)
    (tmp_path / "link").symlink_to(".config/agent")
    ctx = context(tmp_path, tmp_path)
    for resolve in (resolve_readable, resolve_writable):
        with pytest.raises(PathRefused):
            resolve(name, ctx)
    # The full outputs of earlier commands are there.
    assert resolve_readable(str(tmp_path / ".local/share/agent/sessions/s/outputs/1"), ctx)


def test_a_hidden_folder_that_is_the_workspace_is_written(tmp_path: Path) -> None:
    workspace = tmp_path / ".config" / "nvim"
    workspace.mkdir(parents=True)
    assert resolve_writable("init.lua", context(workspace, tmp_path))


def test_a_search_leaves_out_the_agents_own_folders(tmp_path: Path) -> None:
    for name in (".config/agent", "project"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "notes").write_text("needle\n")
    search = Search(pattern="needle", ignore_case=False, glob=None, context=0, deadline=time.monotonic() + 60)
    found, _ = search_by_walking(".", context(tmp_path, tmp_path), search)
    assert [line.path for line in found] == ["project/notes"]
