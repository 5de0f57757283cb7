"""The sandbox policy: toolchains are visible, secrets are not, repositories are protected."""

import os
from pathlib import Path

import pytest

from agent.backends.sandbox.detect import CONTAINS_SYSTEM, build_policy, find_toolchains
from agent.backends.sandbox.git.protection import find_git_paths
from agent.backends.sandbox.types import ResourceLimits
from agent.vocabulary.errors import SandboxError


def folders(root: Path, *names: str) -> None:
    for name in names:
        (root / name).mkdir(parents=True, exist_ok=True)


def files(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folders(tmp_path, "home/me")
    return tmp_path / "home/me"


def toolchains(home: Path, *path: Path | str) -> list[str]:
    environ = {"PATH": os.pathsep.join(map(str, path))}
    return [str(found.relative_to(home.parent.parent)) for found in find_toolchains(environ, home, already_shown=())]


def test_version_managers_are_visible_and_secrets_beside_them_are_not(home: Path) -> None:
    folders(home, ".pyenv/shims", ".nvm/versions/node/v20/bin", ".nvm/versions/node/v20/lib", ".cargo/bin", ".ssh")
    files(home, ".cargo/credentials.toml")
    assert toolchains(home, home / ".pyenv/shims", home / ".cargo/bin", home / ".ssh") == [
        "home/me/.cargo/bin",
        "home/me/.nvm/versions",
        "home/me/.pyenv",
    ]


def test_an_installation_is_shown_with_its_libraries_and_scripts_alone(home: Path) -> None:
    folders(home, "venv/bin", "opt/tool/bin", "opt/tool/lib", "scripts", ".local/bin", ".local/lib")
    files(home, "venv/pyvenv.cfg")
    found = toolchains(home, home / "venv/bin", home / "opt/tool/bin", home / "scripts", home / ".local/bin")
    assert found == ["home/me/.local/bin", "home/me/opt/tool", "home/me/scripts", "home/me/venv"]


def test_a_home_folder_or_anything_above_it_is_never_shown(home: Path) -> None:
    folders(home, "bin", "lib")
    assert toolchains(home, home / "bin", home, home.parent, "/", "/usr", "relative", home / "missing") == [
        "home/me/bin"
    ]


def test_a_link_to_a_toolchain_is_shown_with_its_target(home: Path) -> None:
    folders(home.parent.parent, "disk/pyenv/shims")
    (home / ".pyenv").symlink_to(home.parent.parent / "disk/pyenv")
    assert toolchains(home) == ["disk/pyenv", "home/me/.pyenv"]


def test_a_repository_is_pinned_and_its_hooks_and_config_are_protected(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    folders(git, "hooks", "modules/libs/sub/hooks", "modules/libs/sub/objects", "modules/libs/sub/refs", "worktrees/w")
    files(git, "config", "modules/libs/sub/config", "modules/libs/sub/HEAD", "worktrees/w/commondir")
    found = find_git_paths([tmp_path])
    assert set(found.pinned) == {
        git,
        git / "modules",
        git / "modules/libs",
        git / "modules/libs/sub",
        git / "worktrees",
        git / "worktrees/w",
    }
    assert set(found.protected) == {
        git / "hooks",
        git / "config",
        git / "worktrees/w/commondir",
        git / "modules/libs/sub/hooks",
        git / "modules/libs/sub/config",
    }


def test_looking_at_a_repository_creates_nothing_in_it(tmp_path: Path) -> None:
    files(tmp_path, ".git/config", "nested/.git/config")
    find_git_paths([tmp_path])
    assert [path.name for path in tmp_path.rglob(".git/*")] == ["config", "config"]


@pytest.mark.parametrize("name", ["hooks", "config"])
def test_a_link_in_place_of_hooks_or_config_makes_the_repository_read_only(tmp_path: Path, name: str) -> None:
    folders(tmp_path, ".git", "secret")
    for other in ("hooks", "config"):
        (tmp_path / ".git" / other).symlink_to(tmp_path / "secret")
    (tmp_path / ".git" / name).unlink()
    found = find_git_paths([tmp_path])
    assert found.protected == (tmp_path / ".git", tmp_path / "secret")


def test_a_repository_that_is_a_link_is_not_protected(tmp_path: Path) -> None:
    folders(tmp_path, "secret/hooks", "ws")
    (tmp_path / "ws/.git").symlink_to(tmp_path / "secret")
    assert find_git_paths([tmp_path / "ws"]).protected == ()


def test_the_git_file_of_a_linked_worktree_is_protected(tmp_path: Path) -> None:
    files(tmp_path, ".git")
    assert find_git_paths([tmp_path]).protected == (tmp_path / ".git",)


def test_secrets_inside_a_home_folder_are_hidden_and_its_dot_files_cannot_be_changed(home: Path) -> None:
    files(home, ".ssh/id_rsa", ".config/gh/hosts.yml", ".netrc", "project/a.txt")
    data = home / ".local/share/agent"
    folders(data, "sessions")
    found = build_policy(workspace=home, environ={"HOME": str(home)}, hidden=(data,))
    assert found.hidden_folders == (home / ".ssh", home / ".config/gh", data)
    assert found.hidden_files == (home / ".netrc",)
    # Nothing needs to be kept from renaming in a folder that cannot be changed.
    assert (found.pinned, found.frozen, found.thawed) == ((), (home,), (home / "project",))


def test_own_folders_inside_a_workspace_are_hidden_and_their_parents_pinned(tmp_path: Path) -> None:
    data = tmp_path / "state/agent"
    found = build_policy(workspace=tmp_path, environ={"HOME": "/nonexistent"}, hidden=(data,))
    assert (found.hidden_folders, found.pinned) == ((data,), (tmp_path / "state",))


def test_a_workspace_in_the_home_folder_shows_nothing_else_of_it(home: Path) -> None:
    files(home, ".ssh/id_rsa", "project/a.txt")
    found = build_policy(workspace=home / "project", environ={"HOME": str(home), "PATH": "/usr/bin"})
    assert (found.writable, found.hidden_folders, found.toolchains) == ((home / "project",), (), ())


def test_a_folder_inside_another_is_not_listed_again(tmp_path: Path) -> None:
    folders(tmp_path, "a/b", "c")
    found = build_policy(workspace=tmp_path / "a/b", environ={}, extra_dirs=(tmp_path / "a", tmp_path / "c"))
    assert found.writable == (tmp_path / "a", tmp_path / "c")


@pytest.mark.parametrize("folder", ["/", "/usr", "/etc"])
def test_the_system_cannot_be_a_workspace(folder: str) -> None:
    with pytest.raises(SandboxError, match=CONTAINS_SYSTEM):
        build_policy(workspace=Path(folder), environ={})


def test_the_environment_is_clean_and_points_into_the_box(home: Path, tmp_path: Path) -> None:
    environ = {
        "HOME": str(home),
        "PATH": "/usr/bin",
        "OPENAI_API_KEY": "k",
        "HTTPS_PROXY": "http://proxy",
        "TMPDIR": str(tmp_path),
        "XDG_CACHE_HOME": "/x",
        "USER": "me",
    }
    found = build_policy(workspace=tmp_path / "home", environ=environ).environment
    assert found == {
        "HOME": str(home),
        "PATH": "/usr/bin",
        "USER": "user",
        "LOGNAME": "user",
        "SHELL": "/bin/bash",
        "TMPDIR": "/tmp",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "NO_COLOR": "1",
    }


def test_only_the_identity_is_copied_from_the_git_configuration(home: Path) -> None:
    (home / ".gitconfig").write_text(
        "[core]\n\tsshCommand = evil\n[user]\n\tname = Ada L.\n\temail = ada@example.org\n\tsigningKey = k\n"
    )
    found = build_policy(workspace=home.parent, environ={"HOME": str(home)})
    (document,) = [document for document in found.generated_files if document.path.name == "gitconfig"]
    assert document.content == b"[user]\n\temail = ada@example.org\n\tname = Ada L.\n"


def test_limits_and_certificates_are_part_of_the_policy(home: Path, tmp_path: Path) -> None:
    files(tmp_path, "ca.pem")
    folders(tmp_path, "ws")
    environ = {"SSL_CERT_FILE": str(tmp_path / "ca.pem"), "CURL_CA_BUNDLE": "/missing.pem"}
    found = build_policy(workspace=tmp_path / "ws", environ=environ, limits=ResourceLimits(processes=7))
    assert found.readable[-1] == tmp_path / "ca.pem"
    assert found.limits.processes == 7
