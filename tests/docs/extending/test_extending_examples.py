"""The plugins on the page about extending work as they are shown."""

import re

import pytest

from tests.cli.repl.terminal_session import TerminalSession
from tests.cli.terminal_user import User
from tests.house.source_tree import ROOT
from tests.programs import needs

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "extending.md").read_text()


def install(user: User, *names: str) -> None:
    """Write the files of the page whose first line names them."""
    for name, text in re.findall(r"```(?:python|toml)\n# (plugins/\S+)\n(.*?)```", PAGE, re.DOTALL):
        path = user.home / ".config/agent" / name
        if path.parent.name in names:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def test_the_smallest_plugin_is_a_tool(user: User) -> None:
    install(user, "tides")
    assert user.agent("tools", "call", "high_tide", "harbour=Wick").stdout == "Wick, day 1: 06:04\n"


def test_the_plugin_with_a_dialog_keeps_notes(user: User) -> None:
    install(user, "notes")
    (user.home / "project").mkdir()
    terminal = TerminalSession(user, AGENT_MODEL=user.script())
    terminal.wait_ready()
    terminal.send_line("/jot milk")
    terminal.wait_for("What about milk?")
    terminal.send_line("two litres")
    terminal.wait_for("kept milk")
    terminal.close()
    assert (user.data / "plugins/notes/notes.txt").read_text() == "milk: two litres\n"


@needs("bwrap")
def test_the_sandboxed_plugin_counts_and_sees_nothing_else(user: User) -> None:
    install(user, "lines")
    work = user.home / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\ntwo\n")
    (user.home / "secret.txt").write_text("not for plugins")
    counted = user.agent("tools", "call", "count_lines", "path=a.txt", cwd=work)
    assert (counted.exit_code, counted.stdout) == (0, "2 lines\n"), counted.stderr
    outside = user.agent(
        "tools", "call", "count_lines", f"path={user.home}/secret.txt", "--approval-mode", "yolo", cwd=work
    )
    assert (outside.exit_code != 0, "not for plugins" in outside.stdout + outside.stderr) == (True, False)
    wrong = user.agent("tools", "call", "count_lines", cwd=work)
    assert (wrong.exit_code != 0, "path" in wrong.stderr) == (True, True)
