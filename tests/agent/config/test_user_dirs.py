"""Folders of settings and data."""

import os
import stat
from pathlib import Path

import pytest

from agent.config.user_dirs import config_dir, config_file, data_dir
from agent.vocabulary.errors import ConfigError


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"HOME": "/h"}, "/h/.config/agent"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/agent"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}, "/h/.config/agent"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x", "AGENT_CONFIG_DIR": "/c"}, "/c"),
        ({"HOME": "/h", "AGENT_CONFIG_DIR": "~/c"}, "/h/c"),
    ],
)
def test_the_settings_folder(environ: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.config.user_dirs._PLATFORM", "linux")
    assert config_dir(environ) == Path(folder)
    assert config_file(environ) == Path(folder) / "config.toml"


def test_the_data_folder_is_created_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.config.user_dirs._PLATFORM", "linux")
    chosen = data_dir({"AGENT_SANDBOX": str(tmp_path / "data")})
    by_home = data_dir({"HOME": str(tmp_path)})
    assert (chosen, by_home) == (tmp_path / "data", tmp_path / ".local/share/agent")
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (chosen, by_home)] == [0o700, 0o700]


def test_a_data_folder_that_cannot_be_created_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot create the data folder"):
        data_dir({"AGENT_SANDBOX": str(tmp_path / "file" / "data")})


def test_other_platforms_use_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.config.user_dirs._PLATFORM", "darwin")
    assert config_dir({}).name == "agent"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777, 0o702])
def test_a_data_folder_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(ConfigError, match="other users can write"):
        data_dir({"AGENT_SANDBOX": str(folder)})
    folder.chmod(0o755)
    assert data_dir({"AGENT_SANDBOX": str(folder)}) == folder


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_data_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65534, 65534)
    (tmp_path / "link").symlink_to(folder)
    for name in ("data", "link"):
        with pytest.raises(ConfigError, match="belongs to another user"):
            data_dir({"AGENT_SANDBOX": str(tmp_path / name)})
