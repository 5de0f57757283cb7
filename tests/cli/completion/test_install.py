"""`--install-completion` and `--show-completion`."""

import pytest

from cli.completion.install import START_FILE_COMMENT
from tests.cli.terminal_user import User

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("shell", "start"), [("bash", ".bashrc"), ("zsh", ".zshrc")])
def test_one_line_is_added_to_the_start_file_once(user: User, shell: str, start: str) -> None:
    (user.home / start).write_text("alias ll='ls -l'")
    for _ in range(2):
        assert user.agent("--install-completion", shell).exit_code == 0
    script = user.home / "config" / f"completion.{shell}"
    lines = (user.home / start).read_text().splitlines()
    assert lines == ["alias ll='ls -l'", "", START_FILE_COMMENT, f"[ -r {script} ] && . {script}"]
    assert script.read_text() == user.agent("--show-completion", shell).stdout


def test_fish_scripts_go_to_its_completions_folder(user: User) -> None:
    ended = user.agent("--install-completion", "fish", XDG_CONFIG_HOME=str(user.home / "xdg"))
    names = sorted(path.name for path in (user.home / "xdg" / "fish" / "completions").iterdir())
    assert (ended.exit_code, names) == (0, ["agent.fish", "windlass.fish"])


def test_the_shell_is_detected_if_not_named(user: User) -> None:
    ended = user.agent("--install-completion", SHELL="/bin/zsh")
    assert (ended.exit_code, (user.home / ".zshrc").exists()) == (0, True)


def test_an_unsupported_shell_is_an_error_with_a_hint(user: User) -> None:
    ended = user.agent("--install-completion", "fsh")
    assert ended.exit_code == 2
    assert "did you mean fish?" in ended.stderr and "bash, zsh, fish" in ended.stderr
    assert user.agent("--show-completion", SHELL="/bin/csh").exit_code == 2


def test_an_unwritable_start_file_is_an_error_with_a_hint(user: User) -> None:
    (user.home / ".bashrc").mkdir()
    ended = user.agent("--install-completion", "bash")
    assert ended.exit_code == 42
    assert ".bashrc" in ended.stderr and "--show-completion bash" in ended.stderr
