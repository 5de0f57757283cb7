"""A plan in the person's own editor."""

import shlex
from pathlib import Path

import pytest

from agent.planning.capabilities import Capabilities
from agent.vocabulary.plan import PlanStep
from cli.run.plan_editor import EditCancelled, PlanEditor
from tooling.tool_catalog import load_catalog

MEANS = Capabilities(tools={spec.name: spec for spec in load_catalog().specs})
STEPS = (
    PlanStep(id="a", title="A", instruction="do a"),
    PlanStep(id="b", title="B", instruction="b", depends_on=("a",)),
)


@pytest.fixture(autouse=True)
def _temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    # A plan that was given up stays there for the user.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("tmp")))


class EditorHarness:
    """One visit to the editor after the other, each a shell command on the file."""

    def __init__(self, folder: Path, *commands: str, answers: tuple[str, ...] = ()) -> None:
        for number, command in enumerate(commands):
            (folder / f"visit{number}").write_text(command)
        self._visits = folder / "visits"
        line = (
            f'n=$(cat {self._visits} 2>/dev/null || echo 0); echo $((n + 1)) > {self._visits}; . {folder}/visit$n "$1"'
        )
        self.environ = {"EDITOR": f"sh -c {shlex.quote(line)} editor"}
        self._answers = list(answers)
        self.asked: list[str] = []
        self.printed: list[str] = []

    def run(self) -> tuple[PlanStep, ...]:
        editor = PlanEditor(MEANS, self.environ, ask=self._ask, tell=self.printed.append)
        return editor.edit(STEPS, "the task")

    def _ask(self, question: str) -> str:
        self.asked.append(question)
        if not self._answers:
            raise EOFError
        return self._answers.pop(0)


def test_a_plan_that_is_left_as_it_is_runs_as_it_is(tmp_path: Path) -> None:
    assert EditorHarness(tmp_path, "true").run() == STEPS


def test_what_the_person_wrote_is_what_runs(tmp_path: Path) -> None:
    (first, _) = EditorHarness(tmp_path, """sed -i 's/do a/do it well/' "$1" """).run()
    assert first.instruction == "do it well"


def test_the_file_says_what_it_is_for(tmp_path: Path) -> None:
    EditorHarness(tmp_path, f'cp "$1" {tmp_path}/seen').run()
    assert (tmp_path / "seen").read_text() == (
        "# Request: the task\n"
        "#\n"
        "# Change, add or remove steps; save and close to go on. A file without steps runs nothing.\n"
        "# docs/running-tasks.md#plan-files has all the fields of a step.\n"
        "#\n"
        '[[steps]]\nid = "a"\ntitle = "A"\ninstruction = "do a"\n\n'
        '[[steps]]\nid = "b"\ntitle = "B"\ndepends_on = ["a"]\ninstruction = "b"\n'
    )


def test_an_edit_that_cannot_run_is_told_and_opened_again(tmp_path: Path) -> None:
    edit = EditorHarness(
        tmp_path, """sed -i 's/title/titel/' "$1" """, """sed -i 's/titel/title/' "$1" """, answers=("",)
    )
    assert edit.run() == STEPS
    assert edit.printed == [
        "error: plan.toml has 2 problems:\n"
        "  line 6, step 1 (a): unknown field titel, did you mean title?\n"
        "  line 11, step 2 (b): unknown field titel, did you mean title?"
    ]
    assert edit.asked == ["edit it again? [Y/n] "]


@pytest.mark.parametrize("answers", [("n\n",), ()])
def test_an_edit_may_be_given_up_and_is_not_lost(tmp_path: Path, answers: tuple[str, ...]) -> None:
    with pytest.raises(EditCancelled) as caught:
        EditorHarness(tmp_path, 'echo "x = 1" >> "$1"', answers=answers).run()
    path = Path(caught.value.hint.removeprefix("your edit is in "))
    assert path.read_text().endswith("x = 1\n")
    path.unlink()
    path.parent.rmdir()


@pytest.mark.parametrize("command", [': > "$1"', 'echo "# nothing" > "$1"', """sed -i 's/^[^#]/# &/' "$1" """])
def test_an_emptied_file_runs_nothing(tmp_path: Path, command: str) -> None:
    with pytest.raises(EditCancelled, match="emptied"):
        EditorHarness(tmp_path, command).run()


@pytest.mark.parametrize("command", ["exit 1", 'rm "$1"', "printf '\\377' > \"$1\""])
def test_an_editor_that_fails_runs_nothing(tmp_path: Path, command: str) -> None:
    with pytest.raises(EditCancelled):
        EditorHarness(tmp_path, command).run()


def test_a_missing_editor_is_told(tmp_path: Path) -> None:
    with pytest.raises(EditCancelled, match="'no-such-editor' cannot be started") as caught:
        PlanEditor(MEANS, {"EDITOR": "vi", "VISUAL": "no-such-editor"}).edit(STEPS, "the task")
    assert "VISUAL or EDITOR" in caught.value.hint


def test_the_task_itself_is_not_changed_in_passing(tmp_path: Path) -> None:
    edit = EditorHarness(tmp_path, """sed -i '1i request = "another"' "$1" """)
    with pytest.raises(EditCancelled):
        edit.run()
    assert edit.printed == [
        "error: plan.toml: request: the task itself cannot be changed here; start again with another"
    ]
