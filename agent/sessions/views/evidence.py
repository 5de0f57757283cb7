"""What stands behind a step of an answer: every call with its whole output, every change, every check."""

import os
import re
from dataclasses import replace
from pathlib import Path

from agent.protocol.events import Envelope, PlanMade
from agent.sessions.log.log_index import read_run_chain
from agent.sessions.step_results import StepResultStore
from agent.sessions.store import SessionFolder
from agent.sessions.views.run_summary import CallView, StepView, step_view
from agent.vocabulary.errors import InputError
from agent.vocabulary.plan import PlanStep
from tooling.contract.fast_dataclass import dataclass
from tooling.finish import output_stem
from tooling.output import decode_output

# As the notice in a trimmed output words it; only the file's name counts, it lies among the session's outputs.
_TRIM_NOTICE = re.compile(r"^\[\.\.\. .*; full output: (?P<path>.+) \.\.\.\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A step with all it rests on; `runs` are those that worked on it, `answer` is all it said in the end."""

    session_id: str
    runs: tuple[str, ...]
    step: StepView
    answer: str


def collect_evidence(folder: SessionFolder, run_id: str, step_id: str) -> Evidence:
    """Gather the evidence of a step, also from the runs that this one went on with."""
    chain = read_run_chain(folder.events, run_id)
    planned = _planned_steps(chain).get(step_id)
    events = [envelope for run in chain for envelope in run if envelope.step_id == step_id]
    if planned is None and not events:
        known = ", ".join(_planned_steps(chain)) or "none"
        raise InputError(f"run {run_id} has no step {step_id!r}", f"its steps: {known}")
    step = step_view(planned or PlanStep(id=step_id, title=step_id, instruction=""), events)
    kept = StepResultStore(folder.steps).get(step.key) if step.key else None
    calls = tuple(_with_full_output(call, step_id, folder.outputs) for call in step.calls)
    return Evidence(
        session_id=folder.id,
        runs=tuple(dict.fromkeys(envelope.run_id for envelope in events)),
        step=replace(step, calls=calls),
        answer=(kept.text if kept else "") or step.said or step.summary,
    )


def _planned_steps(chain: list[list[Envelope]]) -> dict[str, PlanStep]:
    return {
        step.id: step
        for run in chain
        for envelope in run
        if isinstance(envelope.event, PlanMade)
        for step in envelope.event.steps
    }


def _with_full_output(call: CallView, step_id: str, outputs: Path) -> CallView:
    """Return a call with its whole output where that was trimmed; a command's own words lead to no other file."""
    notice = _TRIM_NOTICE.search(call.output)
    if notice is None:
        return call
    path = outputs / Path(notice["path"]).name
    if not path.name.startswith(output_stem(step_id, call.attempt)):
        return call
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            return replace(call, output=decode_output(file.read()), output_file=str(path))
    except OSError:
        return call
