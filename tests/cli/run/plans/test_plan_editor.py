"""Editing a plan in the user's editor."""

import shlex
from pathlib import Path

import pytest

from agent.planning.capabilities import Capabilities
from agent.vocabulary.plan import PlanStep
from cli.run.plan_editor import (
    EDIT_SAVED,
    EDITOR_HINT,
    EMPTY_PLAN,
    HEADER,
    REQUEST_CHANGED,
    RETRY_PROMPT,
    EditCancelled,
    PlanEditor,
)
from tooling.tool_catalog import load_catalog

CAPABILITIES = Capabilities(tools={spec.name: spec for spec in load_catalog().specs})
STEPS = (
    PlanStep(id="a", title="A", instruction="do a"),
    PlanStep(id="b", title="B", instruction="b", depends_on=("a",)),
)


@pytest.fixture(autouse=True)
def _temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    # A cancelled edit is left there for the user.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("tmp")))


class EditorHarness:
    """An editor that runs one shell command on the file each time it is opened."""

    def __init__(self, folder: Path, *commands: str, answers: tuple[str, ...] = ()) -> None:
        for number, command in enumerate(commands):
            (folder / f"edit{number}").write_text(command)
        count = folder / "count"
        line = f'n=$(cat {count} 2>/dev/null || echo 0); echo $((n + 1)) > {count}; . {folder}/edit$n "$1"'
        self.environ = {"EDITOR": f"sh -c {shlex.quote(line)} editor"}
        self._answers = list(answers)
        self.asked: list[str] = []
        self.printed: list[str] = []

    def run(self) -> tuple[PlanStep, ...]:
        editor = PlanEditor(CAPABILITIES, self.environ, ask=self._ask, report=self.printed.append)
        return editor.edit(STEPS, "the task")

    def _ask(self, question: str) -> str:
        self.asked.append(question)
        if not self._answers:
            raise EOFError
        return self._answers.pop(0)


def test_an_unchanged_plan_runs_unchanged(tmp_path: Path) -> None:
    assert EditorHarness(tmp_path, "true").run() == STEPS


def test_the_edited_plan_is_what_runs(tmp_path: Path) -> None:
    (first, _) = EditorHarness(tmp_path, """sed -i 's/do a/do it well/' "$1" """).run()
    assert first.instruction == "do it well"


def test_the_file_starts_with_the_request_and_instructions(tmp_path: Path) -> None:
    EditorHarness(tmp_path, f'cp "$1" {tmp_path}/seen').run()
    assert (tmp_path / "seen").read_text() == (
        "# Request: the task\n"
        + "".join(f"# {line}".rstrip() + "\n" for line in HEADER)
        + '[[steps]]\nid = "a"\ntitle = "A"\ninstruction = "do a"\n\n'
        '[[steps]]\nid = "b"\ntitle = "B"\ndepends_on = ["a"]\ninstruction = "b"\n'
    )


def test_an_invalid_edit_is_reported_and_reopened(tmp_path: Path) -> None:
    edit = EditorHarness(
        tmp_path, """sed -i 's/title/titel/' "$1" """, """sed -i 's/titel/title/' "$1" """, answers=("",)
    )
    assert edit.run() == STEPS
    assert edit.printed == [
        "error: plan.toml has 2 problems:\n"
        "  line 6, step 1 (a): unknown field titel, did you mean title?\n"
        "  line 11, step 2 (b): unknown field titel, did you mean title?"
    ]
    assert edit.asked == [RETRY_PROMPT]


@pytest.mark.parametrize("answers", [("n\n",), ()])
def test_a_cancelled_edit_is_saved(tmp_path: Path, answers: tuple[str, ...]) -> None:
    with pytest.raises(EditCancelled) as caught:
        EditorHarness(tmp_path, 'echo "x = 1" >> "$1"', answers=answers).run()
    path = Path(caught.value.hint.removeprefix(EDIT_SAVED))
    assert path.read_text().endswith("x = 1\n")
    path.unlink()
    path.parent.rmdir()


@pytest.mark.parametrize("command", [': > "$1"', 'echo "# nothing" > "$1"', """sed -i 's/^[^#]/# &/' "$1" """])
def test_an_empty_file_runs_nothing(tmp_path: Path, command: str) -> None:
    with pytest.raises(EditCancelled, match=EMPTY_PLAN):
        EditorHarness(tmp_path, command).run()


@pytest.mark.parametrize("command", ["exit 1", 'rm "$1"', "printf '\\377' > \"$1\""])
def test_an_editor_that_fails_runs_nothing(tmp_path: Path, command: str) -> None:
    with pytest.raises(EditCancelled):
        EditorHarness(tmp_path, command).run()


def test_a_missing_editor_is_reported(tmp_path: Path) -> None:
    with pytest.raises(EditCancelled, match="no-such-editor") as caught:
        PlanEditor(CAPABILITIES, {"EDITOR": "vi", "VISUAL": "no-such-editor"}).edit(STEPS, "the task")
    assert caught.value.hint == EDITOR_HINT


def test_the_task_cannot_be_changed_in_the_editor(tmp_path: Path) -> None:
    edit = EditorHarness(tmp_path, """sed -i '1i request = "another"' "$1" """)
    with pytest.raises(EditCancelled):
        edit.run()
    assert edit.printed == [f"error: {REQUEST_CHANGED}"]
