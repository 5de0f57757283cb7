"""Output of `agent plan`: the graph for the user, its data for programs, the plan file."""

import shutil
import sys
from pathlib import Path

from agent.config.user_dirs import os_environ
from agent.planning.estimate import total_usd
from agent.planning.graph import critical_path, levels
from agent.planning.manifest_file import json_manifest, toml_manifest
from agent.planning.plan_text import json_text, toml_text
from agent.vocabulary.outcome import Outcome
from cli.run.progress import wants_color
from cli.run.stdout import sanitize_for_terminal
from cli.safe_write import write_user_file
from cli.screen.colors import Paint
from cli.screen.plan_graph import graph_lines, summary_lines

MANIFEST_HEAD = "What the plan needs and would be asked for. Edit it as needed, then: agent run --manifest FILE …"
MODEL_STEPS = "A model works on {steps}: add the commands and hosts it may use; only its files are known before."
# For pipes and files, which have no width.
_DEFAULT_SIZE = (100, 24)


def render_plan(outcome: Outcome) -> str:
    """Draw the plan, or return the answer if there is nothing to plan."""
    if outcome.plan is None or outcome.plan.answer is not None or not outcome.plan.steps:
        return sanitize_for_terminal(outcome.answer)
    width = shutil.get_terminal_size(_DEFAULT_SIZE).columns
    paint = Paint(has_color=wants_color(os_environ(), sys.stdout))
    steps = outcome.plan.steps
    lines = graph_lines(steps, width=width, paint=paint)
    return "\n".join((*lines, "", *summary_lines(steps, width=width, paint=paint)))


def graph_data(outcome: Outcome) -> dict[str, object]:
    """Return the plan's graph as data: steps by level, critical path, estimated cost."""
    steps = outcome.plan.steps if outcome.plan else ()
    level_of = levels(steps)
    return {
        "levels": [
            [step.id for step in steps if level_of[step.id] == level]
            for level in range(max(level_of.values(), default=-1) + 1)
        ],
        "critical_path": list(critical_path(steps)),
        "est_usd": total_usd(steps),
    }


def manifest_text(outcome: Outcome, path: Path | None = None) -> str:
    """Return the manifest of a plan: as JSON for a JSON file, otherwise as TOML; empty without a plan."""
    if outcome.manifest is None or outcome.plan is None:
        return ""
    if path and path.suffix.lower() == ".json":
        return json_manifest(outcome.manifest)
    models = [step.id for step in outcome.plan.steps if step.type == "task"]
    head = [MANIFEST_HEAD, *([MODEL_STEPS.format(steps=", ".join(models))] if models else []), ""]
    return toml_manifest(outcome.manifest, head=head)


def save_manifest(path: Path, outcome: Outcome) -> None:
    """Write the manifest of a plan as TOML or JSON, by the suffix of the file."""
    if text := manifest_text(outcome, path):
        write_user_file(path, text)


def save_plan(path: Path, request: str, outcome: Outcome) -> None:
    """Write the plan as TOML or JSON, by the suffix of the file."""
    if outcome.plan and outcome.plan.steps:
        dump = json_text if path.suffix.lower() == ".json" else toml_text
        write_user_file(path, dump(request, outcome.plan.steps))
