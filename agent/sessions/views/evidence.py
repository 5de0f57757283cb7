"""The evidence for a step: every call with its full output, every change, every check."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from agent.protocol.envelope import Envelope
from agent.protocol.events import PlanUpdated
from agent.sessions.log.log_index import read_run_chain
from agent.sessions.step_results import StepResultStore
from agent.sessions.store import SessionFolder
from agent.sessions.views.run_summary import CallView, StepView, step_view
from agent.vocabulary.errors import InputError
from agent.vocabulary.plan import PlanStep
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.open_regular import open_fd
from tooling.finish import output_stem
from tooling.output import decode_output

# Longer outputs are better searched in their file.
MAX_OUTPUT_BYTES = 4_000_000
# The notice in a trimmed output. Only the file name is used: the file is in the session's `outputs` folder.
_TRIM_NOTICE = lazy_pattern(r"^\[\.\.\. .*; full output: (?P<path>.+) \.\.\.\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A step with its evidence; `runs` are the runs that worked on it, `answer` is its complete answer."""

    session_id: str
    runs: tuple[str, ...]
    step: StepView
    answer: str


def collect_evidence(folder: SessionFolder, run_id: str, step_id: str) -> Evidence:
    """Collect the evidence for a step from a run and the runs it resumed."""
    chain = read_run_chain(folder.events, run_id)
    planned = _planned_steps(chain).get(step_id)
    events = [envelope for run in chain for envelope in run if envelope.step_id == step_id]
    if planned is None and not events:
        known = ", ".join(_planned_steps(chain)) or "none"
        raise InputError(f"run {run_id} has no step {step_id!r}", f"its steps: {known}")
    step = step_view(planned or PlanStep(id=step_id, title=step_id, instruction=""), events)
    cached = StepResultStore(folder.steps).get(step.key) if step.key else None
    calls = tuple(_with_full_output(call, step_id, folder.outputs) for call in step.calls)
    return Evidence(
        session_id=folder.id,
        runs=tuple(dict.fromkeys(envelope.run_id for envelope in events)),
        step=replace(step, calls=calls),
        answer=(cached.text if cached else "") or step.said or step.summary,
    )


def _planned_steps(chain: list[list[Envelope]]) -> dict[str, PlanStep]:
    return {
        step.id: step
        for run in chain
        for envelope in run
        if isinstance(envelope.event, PlanUpdated)
        for step in envelope.event.steps
    }


def read_bounded(file: BinaryIO, path: Path) -> bytes:
    """Return the content of a file; for an enormous one the beginning and the end, and how to see the rest."""
    size = os.fstat(file.fileno()).st_size
    if size <= MAX_OUTPUT_BYTES:
        return file.read()
    half = MAX_OUTPUT_BYTES // 2
    head = file.read(half)
    file.seek(size - half)
    notice = f"\n[... {size - 2 * half} bytes not shown; full output: {path} ...]\n"
    return head + os.fsencode(notice) + file.read()


def _with_full_output(call: CallView, step_id: str, outputs: Path) -> CallView:
    """Return a call with its full output if that was trimmed.

    A command may print such a notice itself, so only a file of this step and attempt is read.
    """
    notice = _TRIM_NOTICE.search(call.output)
    if notice is None:
        return call
    path = outputs / Path(notice["path"]).name
    if not path.name.startswith(output_stem(step_id, call.attempt)):
        return call
    try:
        fd = open_fd(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(fd, "rb") as file:
            return replace(call, output=decode_output(read_bounded(file, path)), output_file=str(path))
    except OSError:
        return call
