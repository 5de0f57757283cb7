"""Opening the prompt in an untrusted folder runs no code from it."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.config.user_dirs import os_environ
from cli.external_programs import ExternalPrograms, prefer_outside
from cli.repl.ui.completion import FileIndex
from tests.cli.terminal_user import User
from tests.programs import needs


def folder_with(home: Path, names: tuple[str, ...], mark: Path) -> Path:
    folder = home / "project"
    folder.mkdir(exist_ok=True)
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n")
    return folder


@pytest.mark.parametrize("names", [("cli.py",), ("cli/__init__.py", "cli/__main__.py"), ("typer.py", "agent.py")])
def test_a_module_in_the_working_directory_is_not_imported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], names: tuple[str, ...]
) -> None:
    mark = tmp_path / "ran"
    folder = folder_with(tmp_path, names, mark)
    ExternalPrograms(User(home=tmp_path).environment(), folder).run_agent("config", "path")
    assert "config.toml" in capfd.readouterr().out
    assert not mark.exists()


@needs("git")
def test_completing_paths_runs_no_program_configured_by_the_repository(tmp_path: Path) -> None:
    mark, folder, hook = tmp_path / "ran", tmp_path / "project", tmp_path / "hook"
    hook.write_text(f"#!{sys.executable}\nimport pathlib\npathlib.Path({str(mark)!r}).touch()\n")
    hook.chmod(0o755)
    folder.mkdir()
    (folder / "a.txt").touch()
    for words in (("init", "-q"), ("add", "a.txt"), ("config", "core.fsmonitor", str(hook))):
        subprocess.run(["git", *words], cwd=folder, check=True)
    assert FileIndex(folder, os_environ()).names() == ("a.txt",)
    assert not mark.exists()


def test_the_pager_is_not_one_that_a_command_put_into_the_folder(tmp_path: Path) -> None:
    planted = tmp_path / "ws" / ".venv" / "bin" / "cat"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/escaped\n")
    planted.chmod(0o755)
    environ = {"PATH": f"{planted.parent}:/usr/bin:/bin", "PAGER": "cat"}
    ExternalPrograms(environ, tmp_path / "ws").open_pager("text")
    assert not (tmp_path / "escaped").exists()
    assert prefer_outside(["only-there"], environ, tmp_path / "ws") == ["only-there"]
