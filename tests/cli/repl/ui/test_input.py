"""Typing: many lines, history, completion, the editor, the person's own commands."""

import subprocess
import time
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, ESC, TAB, UP, Seat, ctrl
from tests.cli.repl.test_conversation import events, to
from tests.cli.terminal_user import answer

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]


def request(seat: Seat) -> str:
    """Return the newest request as the log has it."""
    return [str(event["content"]) for event in events(seat) if event["type"] == "message" and event["role"] == "user"][
        -1
    ]


def test_alt_enter_begins_a_new_line_and_enter_sends_all(sit: Open) -> None:
    seat = sit(answer("Understood."))
    seat.sees("Ctrl-D leaves")
    seat.types("first line" + ESC + ENTER + "second line")
    seat.sees("second line")
    seat.types(ENTER)
    seat.sees("Understood.")
    assert request(seat) == "first line\nsecond line"


def test_a_pasted_text_is_one_request(sit: Open) -> None:
    seat = sit(answer("Understood."))
    seat.sees("Ctrl-D leaves")
    seat.types("\x1b[200~one\ntwo\nthree\x1b[201~")
    seat.sees("three")
    seat.types(ENTER)
    seat.sees("Understood.")
    assert request(seat) == "one\ntwo\nthree"


def test_history_lasts_from_one_sitting_to_the_next(sit: Open) -> None:
    first = sit(answer("Understood."))
    first.says("a memorable request")
    first.sees("Understood.")
    first.types(ctrl("d"))
    assert first.ends() == 0
    second = sit(answer("Again."))
    second.sees("Ctrl-D leaves")
    second.types(UP)
    second.sees("a memorable request")
    second.types(ctrl("c") + ctrl("r") + "memor")
    second.sees("memorable")
    second.types(ENTER)
    second.settles()
    second.types(ENTER)
    second.sees("Again.")
    assert request(second) == "a memorable request"
    assert (second.user.data / "history").stat().st_mode & 0o077 == 0


def test_commands_complete_with_their_help(sit: Open) -> None:
    seat = sit(answer("x"))
    seat.sees("Ctrl-D leaves")
    seat.types("/mod")
    seat.sees("Show or choose the model.")
    seat.types(TAB + ENTER)
    seat.sees("approval mode: ask" if "/mode" in seat.window() and "/model" not in seat.window() else "model: script:")


def test_paths_complete_and_what_git_ignores_is_left_out(sit: Open) -> None:
    seat = sit(answer("Understood."))
    (seat.folder / "alpha.txt").write_text("the content of alpha")
    (seat.folder / "alphabet.md").write_text("letters")
    (seat.folder / "alpha.log").write_text("ignored")
    (seat.folder / ".gitignore").write_text("*.log\n")
    subprocess.run(["git", "init", "-q"], cwd=seat.folder, check=True)
    seat.sees("Ctrl-D leaves")
    seat.types("read @alpha")
    seat.sees("alphabet.md")
    assert "alpha.log" not in seat.window()
    seat.types(TAB)
    seat.sees("read @alpha")
    seat.types(ENTER)
    seat.settles()
    seat.types(" please" + ENTER)
    seat.sees("Understood.")
    assert request(seat) in ("read @alpha.txt please", "read @alphabet.md please")


def test_paths_of_a_huge_tree_complete_at_once(sit: Open) -> None:
    seat = sit(answer("Understood."))
    subprocess.run(["git", "init", "-q"], cwd=seat.folder, check=True)
    # A blob that need not be there, under a hundred thousand names: git lists what it has noted.
    entries = "".join(f"100644 {'1' * 40}\tsrc/part{n % 300}/file{n}.py\n" for n in range(100_000))
    subprocess.run(["git", "update-index", "--index-info"], cwd=seat.folder, input=entries, text=True, check=True)
    seat.sees("Ctrl-D leaves")
    for wanted in ("file77777.py", "part299/file99899"):
        began = time.monotonic()
        seat.types(f"@{wanted}")
        seat.until(lambda wanted=wanted: seat.window().count(wanted) >= 2, "the path to be offered")
        assert time.monotonic() - began < 2
        seat.types(ctrl("u"))


def test_a_note_is_remembered(sit: Open) -> None:
    seat = sit(answer("x"))
    seat.says("#always use tabs")
    memory = seat.user.data / "MEMORY.md"
    seat.until(lambda: memory.exists() and "always use tabs" in memory.read_text(), "the note to be kept")


def test_the_editor_of_the_person_opens_with_the_text(sit: Open) -> None:
    editor = 'sh -c \'printf "written in the editor" > "$0"\''
    seat = sit(answer("Understood."), VISUAL=editor, EDITOR=editor)
    seat.sees("Ctrl-D leaves")
    seat.types("draft" + ctrl("x") + ctrl("e"))
    seat.sees("written in the editor")
    seat.types(ENTER)
    seat.sees("Understood.")
    assert request(seat) == "written in the editor"


def test_an_own_command_runs_on_the_terminal_and_its_output_goes_along_once(sit: Open) -> None:
    told = answer("It said 42.")
    told["match"] = {"purpose": "planner", "contains": "from 42"}
    seat = sit(told, to("and now", answer("Nothing new.")), to("what", answer("I was told nothing.")))
    seat.says("!echo from $((40 + 2)); tty >/dev/null && echo a-terminal")
    seat.sees("a-terminal")
    seat.sees("your next request takes this output along")
    seat.says("what did it say?")
    seat.sees("It said 42.")
    seat.says("and now?")
    seat.sees("Nothing new.")


def test_a_wrong_command_names_the_nearest_right_one(sit: Open) -> None:
    seat = sit(answer("x"))
    seat.says("/modle")
    seat.sees("there is no command /modle, did you mean mode")
