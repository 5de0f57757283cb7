"""Setting a value leaves the rest of the user's file unchanged."""

import stat
from pathlib import Path

import pytest

from agent.config.edit import EDIT_BY_HAND, edit_text, set_value
from agent.config.load import load_settings
from agent.config.rules import CommandRule, add_rule, remove_rule
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
        ("allow", "ls, git status, make", '    "git status",\n', '    "git status",\n    "make",\n'),
        ("allow", "ls", '    "git status",\n', ""),
        ("max_tokens", "none", "", ""),
    ],
)
def test_only_the_given_value_changes(path: Path, key: str, value: str, old: str, new: str) -> None:
    write(path, BEFORE)
    set_value(path, key, value)
    assert path.read_text() == BEFORE.replace(old, new, 1)


@pytest.mark.parametrize(
    ("before", "key", "after"),
    [
        ("", "model", 'model = "x"\n'),
        ("", "profile.a.model", '[profile.a]\nmodel = "x"\n'),
        ("concurrency = 2", "model", 'concurrency = 2\nmodel = "x"\n'),
        ("concurrency = 2", "keys.groq", 'concurrency = 2\n\n[keys]\ngroq = "x"\n'),
        (
            '# top\n\n# about keys\n[keys]\na = "b"\n',
            "model",
            'model = "x"\n\n# top\n\n# about keys\n[keys]\na = "b"\n',
        ),
        (
            'theme = "dark"\n\n# about keys\n[keys]\na = "b"\n',
            "model",
            'theme = "dark"\nmodel = "x"\n\n# about keys\n[keys]\na = "b"\n',
        ),
        ('[keys]\n[profile.a]\ntheme = "dark"\n', "keys.groq", '[keys]\ngroq = "x"\n[profile.a]\ntheme = "dark"\n'),
        ('keys.openai = "k"\n', "keys.groq", 'keys.openai = "k"\nkeys.groq = "x"\n'),
        ('[profile]\na.theme = "dark"\n', "profile.a.model", '[profile]\na.theme = "dark"\na.model = "x"\n'),
        ('[profile.a.keys]\nb = "c"\n', "profile.a.model", '[profile.a]\nmodel = "x"\n[profile.a.keys]\nb = "c"\n'),
        (
            '[profile.a]\ntheme = "dark"\n[keys]\nb = "c"\n[profile.b]\ntheme = "dark"\n',
            "profile.b.model",
            '[profile.a]\ntheme = "dark"\n[keys]\nb = "c"\n[profile.b]\ntheme = "dark"\nmodel = "x"\n',
        ),
        ('keys = { openai = "k" }\n', "keys.openai", 'keys = { openai = "x" }\n'),
    ],
)
def test_a_new_key_follows_the_last_one_of_its_table(path: Path, before: str, key: str, after: str) -> None:
    write(path, before)
    set_value(path, key, "x")
    assert path.read_text() == after


def test_a_key_is_added_to_an_inline_table(path: Path) -> None:
    write(path, 'keys = {openai = "k"}  # mine\n')
    set_value(path, "keys.groq", "g")
    assert "# mine" in path.read_text()
    assert load_settings(environ={}, config_dir=path.parent).settings.keys == {"openai": "k", "groq": "g"}


def test_a_list_with_other_entries_is_replaced(path: Path) -> None:
    write(path, BEFORE)
    set_value(path, "allow", "pwd")
    assert 'allow = ["pwd"]' in path.read_text()
    assert load_settings(environ={}, config_dir=path.parent).settings.allow == ("pwd",)


def test_rules_are_added_and_removed_within_the_list_of_the_file(path: Path) -> None:
    write(path, BEFORE)
    rule = CommandRule(effect="allow", words="make test")
    local = CommandRule(effect="deny", words="rm -rf", folder="/srv/my site")
    assert add_rule(path, rule) and add_rule(path, local)
    listed = '    "git status",\n    "make test",\n'
    assert path.read_text() == BEFORE.replace('    "git status",\n', listed) + (
        '\n[projects."/srv/my site"]\ndeny = ["rm -rf"]\n'
    )
    assert remove_rule(path, rule)
    assert path.read_text().startswith(BEFORE)


LINES = {
    "model": 'model = "m"',
    "allow": 'allow = ["make"]',
    "web_cache": "web_cache = false",
    "max_tokens": "max_tokens = 5",
    "keys.openai": 'keys.openai = "k"',
}


@pytest.mark.parametrize("key", LINES)
def test_none_removes_a_setting(path: Path, key: str) -> None:
    write(path, "\n".join(LINES.values()))
    set_value(path, key, "none")
    assert path.read_text().splitlines() == [line for name, line in LINES.items() if name != key]


def test_none_removes_neither_tables_nor_unknown_settings(path: Path) -> None:
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


@pytest.mark.parametrize(
    ("before", "key", "value", "message"),
    [
        (BEFORE, "modle", "x", "unknown setting modle, did you mean model?"),
        (BEFORE, "concurrency", "-1", "concurrency: expected at least 1, got -1"),
        (BEFORE, "concurrency", "many", "concurrency: expected a whole number, got text 'many'"),
        (BEFORE, "keys", '{"openai": "x"}', "keys is a table"),
        (BEFORE, "keys", "x", "keys: expected a table"),
        (BEFORE, "profile.work", "x", "unknown setting profile"),
        ("broken = = 1\n", "model", "x", "not valid TOML: Invalid value (at line 1"),
        ('unknown = "x"\n', "model", "x", ":1: unknown setting unknown"),
    ],
)
def test_a_refused_change_leaves_the_file_untouched(
    path: Path, before: str, key: str, value: str, message: str
) -> None:
    write(path, before)
    with pytest.raises(ConfigError) as caught:
        set_value(path, key, value)
    assert message in caught.value.message
    assert path.read_text() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["config.toml"]


def test_a_change_that_would_touch_another_value_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_edit(text: str, keys: tuple[str, ...], value: object) -> str:
        return edit_text(text, keys, value).replace("git", "svn")

    write(path, BEFORE)
    monkeypatch.setattr("agent.config.edit.edit_text", wrong_edit)
    with pytest.raises(ConfigError) as caught:
        set_value(path, "model", "x")
    assert (caught.value.message, caught.value.hint) == (f"{path}: cannot set model", EDIT_BY_HAND)
    assert path.read_text() == BEFORE


def test_a_table_that_the_file_writes_as_a_value_is_left_to_the_user(path: Path) -> None:
    write(path, "step_profiles = {fast = {timeout_s = 5}}\n")
    with pytest.raises(ConfigError) as caught:
        set_value(path, "step_profiles.slow.timeout_s", "9")
    assert caught.value.hint == EDIT_BY_HAND


def test_a_multiline_string_is_replaced(path: Path) -> None:
    write(path, 'api_key = """\nmodel = "x"\n"""\nconcurrency = 2\n')
    set_value(path, "api_key", "y\nz")
    assert path.read_text() == 'api_key = "y\\nz"\nconcurrency = 2\n'


def test_line_endings_and_symbolic_links_are_preserved(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_bytes(b'model = "a"\r\nconcurrency = 2\r\n')
    path.parent.mkdir()
    path.symlink_to(real)
    set_value(path, "model", "b")
    assert path.is_symlink()
    assert real.read_bytes() == b'model = "b"\r\nconcurrency = 2\r\n'
