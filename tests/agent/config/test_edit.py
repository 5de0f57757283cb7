"""Setting a value leaves the rest of the user's file alone."""

import stat
from pathlib import Path

import pytest

from agent.config.edit import set_value
from agent.config.load import load_settings
from agent.vocabulary.errors import ConfigError

BEFORE = """\
# my settings
model = "old"  # fast and "cheap" #1
allow = [
    "ls",  # harmless
    "git status",
]

[keys]
openai = "k"

# for the office
[profile.work]
model = "old"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "config.toml"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("model", "new", 'model = "old"  # fast', 'model = "new"  # fast'),
        ("profile.work.model", "new", '[profile.work]\nmodel = "old"', '[profile.work]\nmodel = "new"'),
        ("keys.openai", "n", 'openai = "k"', 'openai = "n"'),
        ("keys.groq", "g", 'openai = "k"\n', 'openai = "k"\ngroq = "g"\n'),
        ("concurrency", "3", "]\n\n[keys]", "]\nconcurrency = 3\n\n[keys]"),
        ("max_tokens", "none", "", ""),
    ],
)
def test_one_value_changes_and_every_other_line_stays(path: Path, key: str, value: str, old: str, new: str) -> None:
    write(path, BEFORE)
    set_value(path, key, value)
    assert path.read_text() == BEFORE.replace(old, new, 1)


def test_a_list_over_several_lines_is_replaced_as_a_whole(path: Path) -> None:
    write(path, BEFORE)
    set_value(path, "allow", "pwd")
    assert 'allow = ["pwd"]' in path.read_text()
    assert load_settings(environ={}, config_dir=path.parent).settings.allow == ("pwd",)


_LINES = {
    "model": 'model = "m"',
    "allow": 'allow = ["make"]',
    "web_cache": "web_cache = false",
    "max_tokens": "max_tokens = 5",
    "keys.openai": 'keys.openai = "k"',
}


@pytest.mark.parametrize("key", _LINES)
def test_none_takes_a_setting_out(path: Path, key: str) -> None:
    write(path, "\n".join(_LINES.values()))
    set_value(path, key, "none")
    assert path.read_text().splitlines() == [line for name, line in _LINES.items() if name != key]


def test_none_is_no_table(path: Path) -> None:
    with pytest.raises(ConfigError):
        set_value(path, "projects", "none")
    with pytest.raises(ConfigError):
        set_value(path, "no_such_setting", "none")


def test_missing_file_and_tables_are_created_private(path: Path) -> None:
    set_value(path, "keys.openai", 'k"\\\n\x7fé')
    set_value(path, "step_profiles.fast.timeout_s", "5")
    loaded = load_settings(environ={}, config_dir=path.parent)
    assert loaded.settings.keys == {"openai": 'k"\\\n\x7fé'}
    assert loaded.settings.step_profiles["fast"].timeout_s == 5.0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["config.toml"]


def test_a_key_before_the_first_table_lands_above_it(path: Path) -> None:
    write(path, '[keys]\nopenai = "k"\n')
    set_value(path, "model", "m")
    assert path.read_text() == 'model = "m"\n\n[keys]\nopenai = "k"\n'


@pytest.mark.parametrize(
    ("before", "key", "value"),
    [
        (BEFORE, "modle", "x"),
        (BEFORE, "concurrency", "-1"),
        (BEFORE, "concurrency", "many"),
        (BEFORE, "keys", '{"openai": "x"}'),
        (BEFORE, "keys", "x"),
        (BEFORE, "profile.work", "x"),
        ('keys = {openai = "k"}\n', "keys.groq", "g"),
        ("broken = = 1\n", "model", "x"),
        ('unknown = "x"\n', "model", "x"),
    ],
)
def test_what_cannot_be_done_safely_leaves_the_file_untouched(path: Path, before: str, key: str, value: str) -> None:
    write(path, before)
    with pytest.raises(ConfigError):
        set_value(path, key, value)
    assert path.read_text() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["config.toml"]


def test_a_text_over_several_lines_is_replaced_as_a_whole(path: Path) -> None:
    write(path, 'model = """\nmodel = "x"\n"""\nconcurrency = 2\n')
    set_value(path, "model", "y\nz")
    assert path.read_text() == 'model = "y\\nz"\nconcurrency = 2\n'


def test_line_ends_and_links_are_kept(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_bytes(b'model = "a"\r\nconcurrency = 2\r\n')
    path.parent.mkdir()
    path.symlink_to(real)
    set_value(path, "model", "b")
    assert path.is_symlink()
    assert real.read_bytes() == b'model = "b"\r\nconcurrency = 2\r\n'
