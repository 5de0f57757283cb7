"""Cloning the repository of a task: nothing in it is run, credentials are stored nowhere, failures leave nothing."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from agent.vocabulary.errors import AgentError, InputError
from agent.workspace.clone import Cloner, parse_url
from tests.programs import needs

pytestmark = needs("git")


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ("git", *identity, *words), cwd=folder, env=env, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    folder = tmp_path / "origin" / "app.git"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    for number in range(3):
        (folder / "file.txt").write_text(str(number))
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", f"c{number}")
    git(folder, "branch", "side", "HEAD~1")
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def clone(workspace: Path, url: Path | str, branch: str | None = None, *, is_shallow: bool = False) -> Path:
    environ = {"PATH": os.environ["PATH"], "HOME": str(workspace.parent)}
    return asyncio.run(Cloner(environ).open(parse_url(str(url)), branch, workspace, is_shallow=is_shallow))


def test_a_repository_is_cloned_with_its_history_at_the_wanted_branch(workspace: Path, origin: Path) -> None:
    folder = clone(workspace, origin, "side")
    assert folder == workspace / "app"
    assert (folder / "file.txt").read_text() == "1"
    assert git(folder, "rev-list", "--count", "HEAD").strip() == "2"
    (folder / "output").mkdir()
    (folder / "output" / "x").touch()
    assert git(folder, "status", "--porcelain") == ""


def test_a_shallow_clone_has_one_commit(workspace: Path, origin: Path) -> None:
    folder = clone(workspace, origin, is_shallow=True)
    assert git(folder, "rev-list", "--count", "HEAD").strip() == "1"


def test_an_existing_clone_is_used_as_it_is(workspace: Path, origin: Path) -> None:
    folder = clone(workspace, origin)
    (folder / "file.txt").write_text("mine")
    assert clone(workspace, origin, "main") == folder
    assert clone(folder, origin) == folder
    assert (folder / "file.txt").read_text() == "mine"
    with pytest.raises(InputError, match=r"is at .*main.*, not at side"):
        clone(workspace, origin, "side")


def test_a_wrong_branch_is_one_line_and_leaves_nothing(workspace: Path, origin: Path) -> None:
    with pytest.raises(AgentError) as raised:
        clone(workspace, origin, "nope")
    assert raised.value.message == f"cannot clone {origin}: Remote branch nope not found in upstream origin"
    assert list(workspace.iterdir()) == []


def test_something_else_in_the_way_is_not_touched(workspace: Path, origin: Path) -> None:
    (workspace / "app").mkdir()
    with pytest.raises(InputError, match="already exists and is not a clone"):
        clone(workspace, origin)
    assert list((workspace / "app").iterdir()) == []


def test_neither_hooks_nor_templates_of_anyone_are_run(workspace: Path, origin: Path) -> None:
    home = workspace.parent
    hooks = home / "template" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {home}/ran\n")
        (hooks / name).chmod(0o755)
    (home / ".gitconfig").write_text(f"[init]\n\ttemplateDir = {home}/template\n[core]\n\thooksPath = {hooks}\n")
    folder = clone(workspace, origin)
    assert not (home / "ran").exists()
    assert not (folder / ".git" / "hooks").exists()


@pytest.mark.parametrize(
    "url",
    ["", "--upload-pack=touch x", "ext::sh -c touch% x", "fd::17", "ftp://example.org/x", "no/such/folder", "a\nb"],
)
def test_what_is_no_repository_is_refused(workspace: Path, url: str) -> None:
    with pytest.raises(InputError):
        clone(workspace, url)


@pytest.mark.parametrize("branch", ["--upload-pack=x", "-b", "a b", ""])
def test_what_is_no_branch_is_refused(workspace: Path, origin: Path, branch: str) -> None:
    with pytest.raises(InputError):
        clone(workspace, origin, branch)


def test_credentials_are_taken_out_of_a_url() -> None:
    url = parse_url("https://me:s3cret-t0ken@example.org:8443/team/app.git")
    assert (url.address, url.name) == ("https://example.org:8443/team/app.git", "app")
    assert url.secrets[0] == "s3cret-t0ken"
    only_token = parse_url("https://ghp_abcdefghijklmnop@example.org/app")
    assert only_token.address == "https://example.org/app"
    assert only_token.secrets[0] == "ghp_abcdefghijklmnop"
    assert parse_url("git@example.org:team/app.git").name == "app"
    assert parse_url("ssh://git@example.org/app").address == "ssh://git@example.org/app"
