"""`agent memory`: show, add, forget, clear and compact."""

import json

import pytest

from cli.commands.memory import ALREADY_REMEMBERED, SHORT_ENOUGH
from tests.cli.pty_terminal import PtyTerminal
from tests.cli.terminal_user import User

pytestmark = pytest.mark.slow
TOKEN = "ghp_" + "a1B2" * 9


def fill_memory(user: User, size: int = 40_000) -> str:
    """Write a memory that is too large."""
    tags = ("PREF", "DECISION", "CONFIG", "AGREEMENT")
    lines = [
        f"- 2026-01-0{1 + n // 300} {10 + n // 60 % 5}:{n % 60:02}: [{tags[n % 4]}] a thing to remember, number {n}"
        for n in range(size // 66)
    ]
    text = "\n".join(["# Mine", *lines, "a line of my own", ""])
    user.data.mkdir()
    (user.data / "MEMORY.md").write_text(text)
    return text


def preferences(text: str) -> list[str]:
    return [line for line in text.splitlines() if "[PREF]" in line]


def test_an_entry_is_added_once(user: User) -> None:
    assert user.agent("memory", "show").stdout == "(memory is empty)\n"
    assert user.agent("memory", "add", "--tag", "pref", "uses tabs").exit_code == 0
    assert user.agent("memory", "add", "--tag", "PREF", "Uses tabs!").stderr == f"{ALREADY_REMEMBERED}\n"
    assert user.agent("memory", "add", "-", stdin="from a pipe\n").exit_code == 0
    first, second = user.agent("memory", "show").stdout.splitlines()
    assert first.endswith(": [PREF] uses tabs") and second.endswith(": from a pipe")


def test_json_output_has_the_lines_as_data(user: User) -> None:
    assert user.agent("memory", "show", "--json").document == {
        "path": str(user.data / "MEMORY.md"),
        "bytes": 0,
        "lines": [],
    }
    added = user.agent("memory", "add", "--json", "--tag", "config", "port 8080").document
    (user.data / "MEMORY.md").write_text(f"{added['line']}\nmine\n")
    lines = user.agent("memory", "show", "--json").document["lines"]
    stamp = str(added["line"])[2:18]
    assert lines == [
        {"date": stamp, "tag": "CONFIG", "text": "port 8080"},
        {"date": None, "tag": None, "text": "mine"},
    ]
    assert user.agent("memory", "add", "--json", "--tag", "config", "Port 8080").document == {
        "added": False,
        "line": None,
    }


@pytest.mark.parametrize("text", [f"my token is {TOKEN}", "use the sesame-value", "", "x" * 501])
def test_secrets_and_invalid_entries_are_refused(user: User, text: str) -> None:
    ended = user.agent("memory", "add", text, OPENAI_API_KEY="sesame-value")
    assert (ended.exit_code, (user.data / "MEMORY.md").exists()) == (42, False)
    assert "error:" in ended.stderr and TOKEN not in ended.stderr


def test_clearing_is_confirmed_on_a_terminal(user: User) -> None:
    user.agent("memory", "add", "uses tabs")
    terminal = PtyTerminal(user, "memory", "clear")
    terminal.wait_for("forget 1 line in")
    terminal.send_line("n")
    assert terminal.wait_exit()[0] == 1
    assert "uses tabs" in user.agent("memory", "show").stdout
    terminal = PtyTerminal(user, "memory", "clear")
    terminal.wait_for("forget 1 line in")
    terminal.send_line("y")
    assert terminal.wait_exit()[0] == 0
    assert user.agent("memory", "show").stdout == "(memory is empty)\n"


def test_without_a_terminal_clearing_needs_yes(user: User) -> None:
    user.agent("memory", "add", "uses tabs")
    assert user.agent("memory", "clear").exit_code == 2
    assert user.agent("memory", "clear", "--yes", "--json").document == {"cleared": 1}
    assert user.agent("memory", "show").stdout == "(memory is empty)\n"


def test_clearing_deletes_the_backups(user: User) -> None:
    fill_memory(user)
    user.agent("memory", "compact")
    assert len(list((user.data / "memory-backups").iterdir())) == 1
    user.agent("memory", "clear", "--yes")
    assert b"to remember" not in b"".join(path.read_bytes() for path in user.data.rglob("*") if path.is_file())


def test_forgetting_deletes_matching_lines_from_backups_too(user: User) -> None:
    fill_memory(user)
    user.agent("memory", "compact")
    user.agent("memory", "add", "the", "sesame", "door")
    assert user.agent("memory", "forget", "Sesame", "door").stderr.startswith("forgotten: - 20")
    assert user.agent("memory", "forget", "sesame").exit_code == 42
    assert user.agent("memory", "forget", "").exit_code == 42
    assert user.agent("memory", "forget", "number 4").exit_code == 2, "several matches need a confirmation"
    forgotten = user.agent("memory", "forget", "--yes", "--json", "number 4").document["forgotten"]
    assert isinstance(forgotten, list) and len(forgotten) > 1
    assert b"number 4" not in b"".join(path.read_bytes() for path in user.data.rglob("*.md"))
    assert "number 5" in user.agent("memory", "show").stdout


def test_compaction_works_without_a_model(user: User) -> None:
    before = fill_memory(user)
    result = user.agent("memory", "compact", "--json").document
    after = user.agent("memory", "show").stdout
    assert (result["before"], result["by"]) == (len(before), "priority")
    assert int(str(result["after"])) <= 24 * 1024
    assert preferences(after) == preferences(before)
    assert after.startswith("# Mine\n") and after.endswith("a line of my own\n")
    assert user.agent("memory", "compact").stderr.endswith(f"{SHORT_ENOUGH}\n")
    with open(str(result["backup"])) as copy:  # noqa: PTH123
        assert copy.read() == before


def test_compaction_uses_the_configured_model(user: User) -> None:
    before = fill_memory(user)
    kept = preferences(before)[:2]
    model = user.script({"match": {"purpose": "memory", "contains": "<memory>"}, "text": "\n".join(kept)})
    ended = user.agent("memory", "compact", AGENT_MODEL=model)
    assert (ended.exit_code, "by model" in ended.stderr) == (0, True)
    assert user.agent("memory", "show").stdout.splitlines() == ["# Mine", *kept, "a line of my own"]


def test_compaction_falls_back_to_priority_if_the_model_fails(user: User) -> None:
    before = fill_memory(user)
    model = user.script({"match": {"purpose": "memory"}, "text": "I would rather not."})
    ended = user.agent("memory", "compact", "--model", model, "--json")
    assert (ended.exit_code, ended.document["by"]) == (0, "priority")
    assert "does not consist of entries" in ended.stderr
    assert preferences(user.agent("memory", "show").stdout) == preferences(before)


def test_adding_to_a_large_memory_suggests_compaction(user: User) -> None:
    fill_memory(user)
    assert "agent memory compact" in user.agent("memory", "add", "one more").stderr


def test_escape_sequences_do_not_reach_a_terminal(user: User) -> None:
    user.data.mkdir()
    (user.data / "MEMORY.md").write_text("mine \x1b[31mred\n")
    assert "\x1b[31m" in user.agent("memory", "show").stdout
    terminal = PtyTerminal(user, "memory", "show")
    code, shown = terminal.wait_exit()
    assert (code, "\x1b[31m" in shown, "mine red" in shown) == (0, False, True)


def test_an_unwritable_memory_is_an_error_without_a_traceback(user: User) -> None:
    user.data.mkdir()
    (user.data / "MEMORY.md").mkdir()
    ended = user.agent("memory", "add", "x")
    assert (ended.exit_code, "Traceback" in ended.stderr) == (1, False)
    assert json.dumps("MEMORY.md")[1:-1] in ended.stderr
