"""`agent plugins`: the list, and a new plugin that works as it is."""

import json
import os
import subprocess
import sys

import pytest

from tests.cli.plugin_files import write_plugin
from tests.cli.terminal_user import User

pytestmark = pytest.mark.slow


def test_a_new_plugin_works_and_its_test_passes(user: User) -> None:
    made = user.agent("plugins", "new", "word-counter")
    folder = user.home / ".config/agent/plugins/word-counter"
    assert (made.exit_code, made.stdout.splitlines()[0]) == (0, f"created {folder}")
    tested = subprocess.run(
        [sys.executable, "-m", "unittest", "discover", str(folder)],
        env={**os.environ, **user.environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (tested.returncode, "Ran 2 tests" in tested.stderr) == (0, True), tested.stderr
    assert user.agent("tools", "call", "word_counter_count", "text=a b c").stdout == "3 words\n"
    listed = json.loads(user.agent("plugins", "list", "--json").stdout)
    assert [(one["name"], one["state"], one["tools"], one["commands"]) for one in listed] == [
        ("word-counter", "ok", ["word_counter_count"], ["word-counter"])
    ]


@pytest.mark.parametrize(("name", "problem"), [("a/b", "is not a plugin's name"), ("taken", "already exists")])
def test_a_new_plugin_needs_a_name_that_is_free(user: User, name: str, problem: str) -> None:
    write_plugin(user, "taken", "")
    ended = user.agent("plugins", "new", name)
    assert (ended.exit_code, problem in ended.stderr) == (42, True)


def test_the_list_says_what_plugins_add_and_why_one_was_skipped(user: User) -> None:
    write_plugin(user)
    write_plugin(user, "broken", "raise RuntimeError('boom')")
    ended = user.agent("plugins", "list")
    assert ended.exit_code == 1
    good, bad = ended.stdout.splitlines()
    adds = "tools add_note; commands /remember, /note; hooks Recorder; models echo/…; search notes"
    assert good.split(maxsplit=2)[:2] == ["notes", "ok"] and adds in good
    assert bad.split(maxsplit=2)[:2] == ["broken", "skipped"] and "RuntimeError: boom" in bad
    doctor = user.agent("doctor")
    assert "skipped plugin broken" in doctor.stdout
