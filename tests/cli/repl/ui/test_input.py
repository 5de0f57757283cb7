"""Input: multiple lines, history, completion, the editor, notes and shell commands."""

import subprocess

import pytest

from cli.repl.commands.builtin import COMMANDS
from cli.repl.repl import SHELL_OUTPUT_NOTE
from tests.cli.repl.terminal_session import ENTER, ESC, TAB, UP, OpenTerminal, TerminalSession, ctrl
from tests.cli.repl.test_conversation import events, reply_to
from tests.cli.terminal_user import answer
from tests.programs import needs
from tests.tooling.images.sample_images import png

pytestmark = pytest.mark.slow
MODEL_HELP = next(command.help for command in COMMANDS if command.name == "model")


def request(terminal: TerminalSession) -> str:
    """Return the latest request in the log."""
    return [
        str(event["content"]) for event in events(terminal) if event["type"] == "message" and event["role"] == "user"
    ][-1]


def test_alt_enter_inserts_a_new_line_and_enter_sends(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."))
    terminal.wait_ready()
    terminal.send("first line" + ESC + ENTER + "second line")
    # Below the first one, not below the mark of the prompt.
    terminal.wait_for("\n  second line")
    terminal.send(ENTER)
    terminal.wait_for("Understood.")
    assert request(terminal) == "first line\nsecond line"


def test_pasted_lines_are_one_request(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."))
    terminal.wait_ready()
    terminal.send("\x1b[200~one\ntwo\nthree\x1b[201~")
    terminal.wait_for("three")
    terminal.send(ENTER)
    terminal.wait_for("Understood.")
    assert request(terminal) == "one\ntwo\nthree"


def test_a_dragged_image_is_attached_and_named_on_the_screen(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("A gray box."))
    (terminal.folder / "my shot.png").write_bytes(png(40, 30))
    terminal.wait_ready()
    terminal.send(f"what is\x1b[200~'{terminal.folder}/my shot.png'\x1b[201~?")
    terminal.wait_for('my shot.png" ?')
    terminal.send(ENTER)
    terminal.wait_for("A gray box.")
    assert "[image my shot.png 40x30]" in terminal.full_text()
    assert request(terminal) == f'what is @"{terminal.folder}/my shot.png" ?'


def test_tab_completes_an_image_and_the_mention_attaches_it(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("A gray box."))
    (terminal.folder / "my shot.png").write_bytes(png(40, 30))
    terminal.wait_ready()
    terminal.send("what is @my")
    terminal.wait_for(" my shot.png")
    terminal.send(TAB)
    terminal.wait_for('@"my shot.png"')
    terminal.send(ENTER)
    terminal.pause()
    terminal.send(ENTER)
    terminal.wait_for("A gray box.")
    assert "[image my shot.png 40x30]" in terminal.full_text()


def test_history_persists_between_sessions(open_terminal: OpenTerminal) -> None:
    first = open_terminal(answer("Understood."))
    first.send_line("a memorable request")
    first.wait_for("Understood.")
    first.send(ctrl("d"))
    assert first.wait_exit() == 0
    second = open_terminal(answer("Again."))
    second.wait_ready()
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


def test_commands_complete_with_their_help(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("x"))
    terminal.wait_ready()
    terminal.send("/mod")
    terminal.wait_for(MODEL_HELP)
    terminal.send(TAB + ENTER)
    terminal.wait_for(
        "approval mode: ask"
        if "/mode" in terminal.window_text() and "/model" not in terminal.window_text()
        else "model: script:"
    )


@needs("git")
def test_paths_complete_without_files_ignored_by_git(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."))
    (terminal.folder / "alpha.txt").write_text("the content of alpha")
    (terminal.folder / "alphabet.md").write_text("letters")
    (terminal.folder / "alpha.log").write_text("ignored")
    (terminal.folder / ".gitignore").write_text("*.log\n")
    subprocess.run(["git", "init", "-q"], cwd=terminal.folder, check=True)
    terminal.wait_ready()
    terminal.send("read @alpha")
    terminal.wait_for("alphabet.md")
    assert "alpha.log" not in terminal.window_text()
    terminal.send(TAB)
    terminal.wait_for("read @alpha")
    terminal.send(ENTER)
    terminal.pause()
    terminal.send(" please" + ENTER)
    terminal.wait_for("Understood.")
    assert request(terminal) in ("read @alpha.txt please", "read @alphabet.md please")


@needs("git")
def test_paths_of_a_huge_tree_complete(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("Understood."))
    subprocess.run(["git", "init", "-q"], cwd=terminal.folder, check=True)
    # A hundred thousand index entries of a blob that does not exist: git lists its index without reading blobs.
    entries = "".join(f"100644 {'1' * 40}\tsrc/part{n % 300}/file{n}.py\n" for n in range(100_000))
    subprocess.run(["git", "update-index", "--index-info"], cwd=terminal.folder, input=entries, text=True, check=True)
    terminal.wait_ready()
    for query in ("file77777.py", "part299/file99899"):
        terminal.send(f"@{query}")
        terminal.wait_until(lambda query=query: terminal.window_text().count(query) >= 2, "the path to be offered")
        terminal.send(ctrl("u"))


def test_a_note_is_remembered(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("x"))
    terminal.send_line("#always use tabs")
    memory = terminal.user.data / "MEMORY.md"
    terminal.wait_until(lambda: memory.exists() and "always use tabs" in memory.read_text(), "the note to be saved")


def test_the_editor_opens_with_the_text_of_the_prompt(open_terminal: OpenTerminal) -> None:
    editor = 'sh -c \'printf "written in the editor" > "$0"\''
    terminal = open_terminal(answer("Understood."), VISUAL=editor, EDITOR=editor)
    terminal.wait_ready()
    terminal.send("draft" + ctrl("x") + ctrl("e"))
    terminal.wait_for("written in the editor")
    terminal.send(ENTER)
    terminal.wait_for("Understood.")
    assert request(terminal) == "written in the editor"


def test_a_shell_command_runs_on_the_terminal_and_its_output_is_sent_once(open_terminal: OpenTerminal) -> None:
    informed = answer("It said 42.")
    informed["match"] = {"purpose": "planner", "contains": "from 42"}
    terminal = open_terminal(
        informed, reply_to("and now", answer("Nothing new.")), reply_to("what", answer("I was told nothing."))
    )
    terminal.send_line("!echo from $((40 + 2)); tty >/dev/null && echo a-terminal")
    terminal.wait_for("a-terminal")
    terminal.wait_for(SHELL_OUTPUT_NOTE)
    terminal.send_line("what did it say?")
    terminal.wait_for("It said 42.")
    terminal.send_line("and now?")
    terminal.wait_for("Nothing new.")


def test_an_unknown_command_suggests_the_closest_one(open_terminal: OpenTerminal) -> None:
    terminal = open_terminal(answer("x"))
    terminal.send_line("/modle")
    terminal.wait_for("unknown command /modle, did you mean /mode")
