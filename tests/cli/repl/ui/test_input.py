"""Typing: many lines, history, completion, the editor, the person's own commands."""

import subprocess
import time
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, ESC, TAB, UP, TerminalSession, ctrl
from tests.cli.repl.test_conversation import events, reply_to
from tests.cli.terminal_user import answer
from tests.programs import needs

pytestmark = pytest.mark.slow
Open = Callable[..., TerminalSession]


def request(seat: TerminalSession) -> str:
    """Return the newest request as the log has it."""
    return [str(event["content"]) for event in events(seat) if event["type"] == "message" and event["role"] == "user"][
        -1
    ]


def test_alt_enter_begins_a_new_line_and_enter_sends_all(sit: Open) -> None:
    seat = sit(answer("Understood."))
    seat.wait_for("Ctrl-D leaves")
    seat.send("first line" + ESC + ENTER + "second line")
    seat.wait_for("second line")
    seat.send(ENTER)
    seat.wait_for("Understood.")
    assert request(seat) == "first line\nsecond line"


def test_a_pasted_text_is_one_request(sit: Open) -> None:
    seat = sit(answer("Understood."))
    seat.wait_for("Ctrl-D leaves")
    seat.send("\x1b[200~one\ntwo\nthree\x1b[201~")
    seat.wait_for("three")
    seat.send(ENTER)
    seat.wait_for("Understood.")
    assert request(seat) == "one\ntwo\nthree"


def test_history_lasts_from_one_sitting_to_the_next(sit: Open) -> None:
    first = sit(answer("Understood."))
    first.send_line("a memorable request")
    first.wait_for("Understood.")
    first.send(ctrl("d"))
    assert first.wait_exit() == 0
    second = sit(answer("Again."))
    second.wait_for("Ctrl-D leaves")
    second.send(UP)
    second.wait_for("a memorable request")
    second.send(ctrl("c") + ctrl("r") + "memor")
    second.wait_for("memorable")
    second.send(ENTER)
    second.pause()
    second.send(ENTER)
    second.wait_for("Again.")
    assert request(second) == "a memorable request"
    assert (second.user.data / "history").stat().st_mode & 0o077 == 0


def test_commands_complete_with_their_help(sit: Open) -> None:
    seat = sit(answer("x"))
    seat.wait_for("Ctrl-D leaves")
    seat.send("/mod")
    seat.wait_for("Show or choose the model.")
    seat.send(TAB + ENTER)
    seat.wait_for(
        "approval mode: ask"
        if "/mode" in seat.window_text() and "/model" not in seat.window_text()
        else "model: script:"
    )


@needs("git")
def test_paths_complete_and_what_git_ignores_is_left_out(sit: Open) -> None:
    seat = sit(answer("Understood."))
    (seat.folder / "alpha.txt").write_text("the content of alpha")
    (seat.folder / "alphabet.md").write_text("letters")
    (seat.folder / "alpha.log").write_text("ignored")
    (seat.folder / ".gitignore").write_text("*.log\n")
    subprocess.run(["git", "init", "-q"], cwd=seat.folder, check=True)
    seat.wait_for("Ctrl-D leaves")
    seat.send("read @alpha")
    seat.wait_for("alphabet.md")
    assert "alpha.log" not in seat.window_text()
    seat.send(TAB)
    seat.wait_for("read @alpha")
    seat.send(ENTER)
    seat.pause()
    seat.send(" please" + ENTER)
    seat.wait_for("Understood.")
    assert request(seat) in ("read @alpha.txt please", "read @alphabet.md please")


@needs("git")
def test_paths_of_a_huge_tree_complete_at_once(sit: Open) -> None:
    seat = sit(answer("Understood."))
    subprocess.run(["git", "init", "-q"], cwd=seat.folder, check=True)
    # A blob that need not be there, under a hundred thousand names: git lists what it has noted.
    entries = "".join(f"100644 {'1' * 40}\tsrc/part{n % 300}/file{n}.py\n" for n in range(100_000))
    subprocess.run(["git", "update-index", "--index-info"], cwd=seat.folder, input=entries, text=True, check=True)
    seat.wait_for("Ctrl-D leaves")
    for wanted in ("file77777.py", "part299/file99899"):
        began = time.monotonic()
        seat.send(f"@{wanted}")
        seat.wait_until(lambda wanted=wanted: seat.window_text().count(wanted) >= 2, "the path to be offered")
        assert time.monotonic() - began < 2
        seat.send(ctrl("u"))


def test_a_note_is_remembered(sit: Open) -> None:
    seat = sit(answer("x"))
    seat.send_line("#always use tabs")
    memory = seat.user.data / "MEMORY.md"
    seat.wait_until(lambda: memory.exists() and "always use tabs" in memory.read_text(), "the note to be kept")


def test_the_editor_of_the_person_opens_with_the_text(sit: Open) -> None:
    editor = 'sh -c \'printf "written in the editor" > "$0"\''
    seat = sit(answer("Understood."), VISUAL=editor, EDITOR=editor)
    seat.wait_for("Ctrl-D leaves")
    seat.send("draft" + ctrl("x") + ctrl("e"))
    seat.wait_for("written in the editor")
    seat.send(ENTER)
    seat.wait_for("Understood.")
    assert request(seat) == "written in the editor"


def test_an_own_command_runs_on_the_terminal_and_its_output_goes_along_once(sit: Open) -> None:
    told = answer("It said 42.")
    told["match"] = {"purpose": "planner", "contains": "from 42"}
    seat = sit(told, reply_to("and now", answer("Nothing new.")), reply_to("what", answer("I was told nothing.")))
    seat.send_line("!echo from $((40 + 2)); tty >/dev/null && echo a-terminal")
    seat.wait_for("a-terminal")
    seat.wait_for("your next request takes this output along")
    seat.send_line("what did it say?")
    seat.wait_for("It said 42.")
    seat.send_line("and now?")
    seat.wait_for("Nothing new.")


def test_a_wrong_command_names_the_nearest_right_one(sit: Open) -> None:
    seat = sit(answer("x"))
    seat.send_line("/modle")
    seat.wait_for("there is no command /modle, did you mean mode")
