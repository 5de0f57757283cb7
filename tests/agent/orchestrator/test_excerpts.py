"""Excerpts of results for dependent steps."""

import asyncio
from pathlib import Path

from agent.execution.result.compose import EXCERPTS_CHARS, dependency_excerpts
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorResponse, StepOutput

LONG = "".join(f"line {number}\n" for number in range(3000))


def result(name: str, text: str) -> tuple[PlanStep, ExecutorResponse]:
    output = StepOutput(type="text", content=text)
    response = ExecutorResponse(task_id=name, status="ok", summary=text[:20], outputs=(output,))
    return PlanStep(id=name, title=name, instruction="x"), response


def excerpt_text(found: list[tuple[PlanStep, ExecutorResponse]], outputs: Path) -> str:
    return asyncio.run(dependency_excerpts(found, outputs))


def test_a_long_result_is_truncated_and_refers_to_the_full_text(tmp_path: Path) -> None:
    text = excerpt_text([result("a", LONG), result("b", "short")], tmp_path)
    assert len(text) < EXCERPTS_CHARS
    assert f"the whole is in {tmp_path}/a-1-answer.txt" in text
    assert (tmp_path / "a-1-answer.txt").read_text() == LONG
    assert [path.name for path in tmp_path.iterdir()] == ["a-1-answer.txt"]


def test_short_results_leave_no_file(tmp_path: Path) -> None:
    text = excerpt_text([result("a", "one"), result("b", "two")], tmp_path)
    assert ("one" in text, "two" in text, list(tmp_path.iterdir())) == (True, True, [])


def test_if_the_full_text_cannot_be_saved_no_path_is_given(tmp_path: Path) -> None:
    text = excerpt_text([result("a", LONG)], tmp_path / "missing")
    assert ("characters left out]" in text, "the whole is in" in text) == (True, False)


def test_a_step_id_cannot_escape_the_output_folder(tmp_path: Path) -> None:
    inside = tmp_path / "outputs"
    inside.mkdir()
    excerpt_text([result("../../evil", LONG)], inside)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_relative_to(inside)] == []


def test_step_ids_that_are_equal_in_ascii_get_separate_files(tmp_path: Path) -> None:
    found = [result("шаг", LONG), result("дом", LONG.upper()), result("д" * 64, LONG.title())]
    text = excerpt_text(found, tmp_path)
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == sorted((LONG, LONG.upper(), LONG.title()))
    assert all(str(path) in text for path in tmp_path.iterdir())


def test_saved_results_are_masked(tmp_path: Path) -> None:
    asyncio.run(
        dependency_excerpts([result("a", LONG)], tmp_path, lambda text: text.replace("line 7\n", "[REDACTED]\n"))
    )
    assert "line 6\n[REDACTED]\nline 8" in (tmp_path / "a-1-answer.txt").read_text()
