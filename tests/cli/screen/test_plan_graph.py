"""Plans drawn as text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agent.vocabulary.plan import PlanStep, StepType
from cli.screen.colors import Paint
from cli.screen.plan_graph import COST_FREE, COST_UNKNOWN, NO_MODEL, cost_text, graph_lines, summary_lines

BARE = Paint(has_color=False)


def step(name: str, title: str, *after: str, type: StepType = "task", est_usd: float | None = 0.04) -> PlanStep:
    return PlanStep(id=name, title=title, instruction=title, depends_on=after, type=type, est_usd=est_usd)


STEPS = (
    step("fetch", "Download the sources", type="tool", est_usd=0.0),
    step("lint", "Check the style of every file and of the tests"),
    step("which", "Which one?", type="ask_user", est_usd=0.0),
    step("build", "Build it", "fetch"),
    step("report", "Write the report about what was built", "build", "lint", "which"),
)


def test_levels_dependencies_and_the_critical_path_are_drawn() -> None:
    assert graph_lines(STEPS, width=80, paint=BARE) == [
        "1 ┌ ● fetch   Download the sources (call)",
        "  │ ○ lint    Check the style of every file and of the tests",
        "  └ ○ which   Which one? (question)",
        "2 ─ ● build   Build it  ← fetch",
        "3 ─ ● report  Write the report about what was built  ← build, lint, which",
    ]
    assert summary_lines(STEPS, width=80, paint=BARE) == [
        "● critical path: fetch → build → report",
        "estimated cost: about $0.12 for steps of typical size",
    ]


def test_a_narrow_terminal_clips_titles_and_moves_dependencies_below() -> None:
    assert graph_lines(STEPS, width=40, paint=BARE) == [
        "1 ┌ ● fetch   Download the sources (cal…",
        "  │ ○ lint    Check the style of every…",
        "  └ ○ which   Which one? (question)",
        "2 ─ ● build   Build it  ← fetch",
        "3 ─ ● report  Write the report about wh…",
        "              ← build, lint, which",
    ]


def test_marks_show_the_status_of_each_step() -> None:
    statuses = {"fetch": "ok", "lint": "error", "which": "needs_input", "build": "running", "report": "skipped"}
    lines = graph_lines(STEPS, width=80, paint=BARE, statuses=statuses)
    assert [line[4] for line in lines] == ["✓", "✗", "?", "▶", "–"]


def test_color_does_not_change_the_text() -> None:
    colored = graph_lines(STEPS, width=60, paint=Paint(has_color=True))
    assert [re.sub(r"\x1b\[\d*m", "", line) for line in colored] == graph_lines(STEPS, width=60, paint=BARE)
    assert any("\x1b" in line for line in colored)


def test_a_title_cannot_move_the_cursor() -> None:
    evil = step("a", "red \x1b[31m and\nnew line\x07")
    assert not re.search(r"[\x00-\x1f]", "".join(graph_lines([evil], width=80, paint=BARE)))


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (STEPS, "estimated cost: about $0.12 for steps of typical size"),
        ((step("a", "A", est_usd=None), STEPS[0]), COST_UNKNOWN),
        ((step("a", "A", est_usd=0.0),), COST_FREE),
        ((STEPS[0],), NO_MODEL),
    ],
)
def test_the_cost_is_shown_as_an_estimate(steps: tuple[PlanStep, ...], words: str) -> None:
    assert cost_text(steps) == words


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=90), st.lists(st.integers(0, 11), max_size=5)), max_size=12),
    st.integers(1, 250),
)
def test_no_line_is_wider_than_the_terminal_and_no_step_is_lost(drawn: list[tuple[str, list[int]]], width: int) -> None:
    steps = [step(f"s{n}", title, *(f"s{dep}" for dep in deps)) for n, (title, deps) in enumerate(drawn)]
    lines = graph_lines(steps, width=width, paint=BARE)
    assert all(cell_len(line) <= min(max(width, 40), 200) for line in lines)
    assert sorted(re.findall(r"[●○] (s\d+)", "\n".join(lines))) == sorted(one.id for one in steps)


def test_a_long_plan_is_folded_to_what_runs_failed_and_comes_next() -> None:
    steps = tuple(
        PlanStep(
            id=f"s{number}", title=f"Step {number}", instruction="x", depends_on=(f"s{number - 1}",) * (number > 1)
        )
        for number in range(1, 25)
    )
    statuses = {f"s{number}": "ok" for number in range(1, 11)} | {"s11": "error", "s12": "running"}
    plain = Paint(has_color=False)
    lines = graph_lines(steps, width=80, paint=plain, statuses=statuses, max_steps=12, more_hint=" (/plan shows all)")
    assert len(lines) == 12
    assert [line.split()[0] for line in lines[:-1]] == [str(number) for number in range(11, 22)]
    assert lines[-1] == "… 10 more done, 3 to do (/plan shows all)"
    assert len(graph_lines(steps, width=80, paint=plain, statuses=statuses)) == 24
    fresh = graph_lines(steps, width=80, paint=plain, max_steps=12)
    assert [line.split()[3] for line in fresh[:-1]] == [f"s{number}" for number in range(1, 12)]
    assert fresh[-1] == "… 13 more steps"
