"""A home folder as the workspace: what starts or configures programs cannot be written, whether it exists or not."""

from pathlib import Path

import pytest

from agent.backends.sandbox.runner import SandboxCommandRunner
from agent.backends.sandbox.types import split_words
from agent.vocabulary.errors import SandboxError
from tests.agent.backends.backend_cases import ENVIRON, SANDBOXES, BuildRunner, list_names
from tests.programs import needs
from tooling.contract.command import CommandOutput, CommandRequest

pytestmark = pytest.mark.slow

# Files that shells, git, ssh, desktops, schedulers and interpreters read in a home folder.
STARTED = split_words(
    """
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin
    .kshrc .cshrc .tcshrc .login .inputrc .pam_environment .xprofile .xsession .xinitrc .gitconfig
    .config/git/config .config/git/hooks/post-commit .ssh/authorized_keys .ssh/config .ssh/rc .gnupg/gpg.conf
    .config/fish/config.fish .config/autostart/evil.desktop .config/systemd/user/evil.service
    .config/environment.d/evil.conf .local/bin/ls bin/ls .local/share/applications/evil.desktop
    .local/lib/python3.11/site-packages/usercustomize.py .vimrc .vim/plugin/evil.vim .config/nvim/init.lua
    .emacs .emacs.d/init.el .tmux.conf .screenrc .npmrc .yarnrc .cargo/config.toml .cargo/env .pypirc
    .config/pip/pip.conf .condarc .gemrc .irbrc .Rprofile .gdbinit .curlrc .wgetrc .forward .crontab
    .config/agent/config.toml .local/share/agent/MEMORY.md .config/direnv/direnvrc .config/mise/config.toml
    .some-tool-nobody-has-heard-of
    """
)


async def sh(runner: SandboxCommandRunner, command: str) -> CommandOutput:
    cwd = runner.sandbox.policy.writable[0]
    return await runner.run(CommandRequest(argv=("bash", "-c", command), cwd=cwd, timeout_s=60))


def plant_all(home: Path) -> str:
    return "".join(f"mkdir -p {(home / name).parent}; echo evil > {home / name}\n" for name in STARTED)


def contents(home: Path) -> dict[str, str]:
    return {str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "users" / "u"
    (home / "project").mkdir(parents=True)
    (home / "notes.txt").write_text("mine\n")
    return home


@needs("bwrap")
@pytest.mark.parametrize("exists", [True, False], ids=["existing", "missing"])
@pytest.mark.parametrize("above", ["", ".."], ids=["home", "folder above"])
async def test_nothing_that_starts_programs_can_be_written(
    home: Path, above: str, exists: bool, build_runner: BuildRunner
) -> None:
    if exists:
        for name in STARTED:
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text("mine\n")
    before = contents(home)
    environ = {**ENVIRON, "HOME": str(home), "PATH": f"{home}/bin:{ENVIRON['PATH']}"}
    own = (home / ".local/share/agent", home / ".config/agent")
    runner = build_runner((home / above).resolve(), environ=environ, hidden=own)
    move = f"cd {home}; for d in .config .local .ssh bin; do mv $d x.$d; mkdir $d; done; ln -s project/evil .zshrc; "
    await sh(runner, f"mv {home} {home}.old; {plant_all(home)}{move}rm -rf .config .local .bashrc")
    assert contents(home) == before
    assert {name for name in list_names(home) if name.startswith(("x.", "."))} <= {
        Path(name).parts[0] for name in STARTED
    }


@needs("bwrap")
async def test_visible_folders_and_files_of_a_home_folder_can_be_changed(home: Path, build_runner: BuildRunner) -> None:
    runner = build_runner(home, environ={**ENVIRON, "HOME": str(home)})
    found = await sh(runner, "echo new > project/a; echo more >> notes.txt; touch at-the-top")
    assert (home / "project" / "a").read_text() == "new\n"
    assert (home / "notes.txt").read_text() == "mine\nmore\n"
    assert b"at-the-top" in found.output
    assert list_names(home) == ["notes.txt", "project"]


@pytest.mark.parametrize("above", ["", ".."], ids=["home", "folder above"])
def test_landlock_refuses_a_home_folder(home: Path, above: str, build_runner: BuildRunner) -> None:
    with pytest.raises(SandboxError, match="only bubblewrap can protect"):
        build_runner((home / above).resolve(), "landlock", environ={**ENVIRON, "HOME": str(home)})


@needs("bwrap")
async def test_own_folders_in_a_workspace_are_hidden_even_if_they_did_not_exist(
    tmp_path: Path, build_runner: BuildRunner
) -> None:
    own = (tmp_path / "conf", tmp_path / "state" / "data")
    runner = build_runner(tmp_path, hidden=own)
    await sh(
        runner, "mv state s; for d in conf state/data; do mkdir -p $d; echo evil > $d/config.toml; done; rm -r conf"
    )
    assert [list_names(folder) for folder in own] == [[], []]


@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("inner", ["", "sessions", "sessions/s1", "worktrees/w", "themes"])
def test_own_folders_cannot_be_the_workspace(
    tmp_path: Path, inner: str, sandbox: str, build_runner: BuildRunner
) -> None:
    (tmp_path / inner).mkdir(parents=True, exist_ok=True)
    with pytest.raises(SandboxError, match="own files"):
        build_runner(tmp_path / inner, sandbox, hidden=(tmp_path,))
    work = tmp_path / "sessions" / "s1" / "workspace"
    work.mkdir(parents=True)
    build_runner(work, sandbox, hidden=(tmp_path,))


@needs("bwrap")
async def test_a_repository_in_a_dot_folder_does_not_open_it_to_the_next_run(
    home: Path, build_runner: BuildRunner
) -> None:
    for name in (".oh-my-zsh/.git", ".config/nvim/.git", "project/.git"):
        for part in ("HEAD", "objects", "refs", "hooks"):
            (home / name / part).mkdir(parents=True)
        (home / name / "config").touch()
    before = contents(home)
    runner = build_runner(home, environ={**ENVIRON, "HOME": str(home)})
    await sh(runner, "true")
    runner.protect_new_repositories()
    await sh(runner, "echo evil > .oh-my-zsh/oh-my-zsh.sh; echo evil > .config/nvim/init.lua; echo x > .config/new")
    assert contents(home) == before
    await sh(runner, "echo mine > project/file")
    assert (home / "project/file").read_text() == "mine\n"
