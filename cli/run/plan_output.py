"""The end of `agent plan`: the graph for a person, its figures for a program, the file that runs it."""

import shutil
import sys
from pathlib import Path

from agent.config.user_dirs import os_environ
from agent.planning.estimate import total_usd
from agent.planning.graph import critical_path, levels
from agent.planning.plan_text import json_text, toml_text
from agent.vocabulary.outcome import Outcome
from cli.run.progress import wants_colour
from cli.run.stdout import sanitize_for_terminal
from cli.safe_write import write_user_file
from cli.screen.colors import Paint
from cli.screen.plan_graph import graph_lines, summary_lines

# What a program or a file gets, which have no width.
_DEFAULT_SIZE = (100, 24)


def render_plan(outcome: Outcome) -> str:
    """Return the plan as a drawing; or the answer when there is nothing to plan."""
    if outcome.plan is None or outcome.plan.answer is not None or not outcome.plan.steps:
        return sanitize_for_terminal(outcome.answer)
    width = shutil.get_terminal_size(_DEFAULT_SIZE).columns
    paint = Paint(has_colour=wants_colour(os_environ(), sys.stdout))
    steps = outcome.plan.steps
    lines = graph_lines(steps, width=width, paint=paint)
    return "\n".join((*lines, "", *summary_lines(steps, width=width, paint=paint)))


def graph_data(outcome: Outcome) -> dict[str, object]:
    """Return the shape of the plan as data: steps by level, the critical path, the estimated cost of all."""
    steps = outcome.plan.steps if outcome.plan else ()
    place = levels(steps)
    return {
        "levels": [
            [step.id for step in steps if place[step.id] == level]
            for level in range(max(place.values(), default=-1) + 1)
        ],
        "critical_path": list(critical_path(steps)),
        "est_usd": total_usd(steps),
    }


def save_plan(path: Path, request: str, outcome: Outcome) -> None:
    """Write the plan to a file, in the form its name ends in."""
    if outcome.plan and outcome.plan.steps:
        form = json_text if path.suffix.lower() == ".json" else toml_text
        write_user_file(path, form(request, outcome.plan.steps))
