"""Exports a session as JSON for programs or as Markdown for readers."""

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager

from agent.protocol.envelope import Envelope
from agent.protocol.events import MessageAdded
from agent.sessions.log.log_index import parse_event, parse_head, read_raw
from agent.sessions.store import SessionFolder
from agent.sessions.views.run_summary import CallView, RunView, StepView, run_view
from agent.sessions.views.session_summary import read_head
from agent.sessions.views.titles import session_title
from tooling.contract.fast_dataclass import dataclass
from tooling.output import sanitize_output

FORMAT_VERSION = 1
_TITLE_CHARS = 100
_MESSAGE = b'{"v": 1, "type": "message"'
_CALLS = b', "tool_calls": [{'
_SUBJECT_ARGUMENTS = ("command", "code", "path", "url", "query", "pattern", "question")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDocument:
    """A complete session; `v` is the version of the export format."""

    v: int
    id: str
    title: str
    created_at: str
    updated_at: str
    cwd: str
    cost_usd: float | None
    runs: tuple[RunView, ...]


def load_document(folder: SessionFolder) -> SessionDocument:
    """Read a complete session."""
    with _without_collector():
        runs: dict[str, list[Envelope]] = {}
        for raw in read_raw(folder.events):
            if envelope := _shown(raw, folder.id):
                runs.setdefault(envelope.run_id, []).append(envelope)
        views = tuple(run_view(events) for events in runs.values())
        head = read_head(folder)
    return SessionDocument(
        v=FORMAT_VERSION,
        id=head.id,
        title=session_title(folder, head),
        created_at=head.created_at,
        updated_at=head.updated_at,
        cwd=head.cwd,
        cost_usd=head.cost_usd,
        runs=views,
    )


def _shown(raw: bytes, session_id: str) -> Envelope | None:
    """Decode a line; a reply that only calls tools is reduced to its usage, since calls have their own events."""
    if raw.startswith(_MESSAGE) and _CALLS in raw and (line := parse_head(raw)) and line.step_id:
        return Envelope(
            event=MessageAdded(role="assistant", content="", tool_calls=(), spent=line.spent()),
            seq=line.seq,
            ts=line.ts,
            session_id=session_id,
            run_id=line.run_id,
            step_id=line.step_id,
            attempt=line.attempt,
        )
    return parse_event(raw)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Disable garbage collection: scanning a million live objects would take most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def render_markdown(document: SessionDocument) -> str:
    """Render a session as Markdown, without terminal control characters."""
    return sanitize_output("\n\n".join(_blocks(document))) + "\n"


def _blocks(document: SessionDocument) -> Iterator[str]:
    yield f"# {_heading(document.title or document.id)}"
    yield "\n".join(
        (
            f"- session `{document.id}`, {document.created_at} to {document.updated_at}",
            f"- folder `{document.cwd}`",
            f"- runs: {len(document.runs)}" + (f", ${document.cost_usd:.4f}" if document.cost_usd else ""),
        )
    )
    for number, run in enumerate(document.runs, 1):
        yield from _run_blocks(number, run)


def _run_blocks(number: int, run: RunView) -> Iterator[str]:
    yield f"## {number}. {_heading(run.request or run.run_id)}"
    ending = run.subtype if run.exit_code is None else f"{run.subtype}, exit code {run.exit_code}"
    resumes = f", resumes `{run.resumes}`" if run.resumes else ""
    yield f"`{run.run_id}`, {run.started_at}, {ending}{resumes}"
    yield "\n".join(f"> {line}".rstrip() for line in run.request.splitlines())
    if run.images:
        yield "\n".join(f"- {image.label}" for image in run.images)
    if run.steps:
        yield "### Plan"
        yield "\n".join(map(_plan_line, run.steps))
    for revision in run.revisions:
        yield f"Revision {revision.revision} ({revision.reason}):"
        yield code_block(revision.diff, "diff")
    for step in run.steps:
        if step.calls or step.changes or step.said:
            yield from _step_blocks(step)
    yield from (f"**Error:** {error}" for error in run.errors)
    if run.answer:
        yield "### Answer"
        yield run.answer.strip()


def _plan_line(step: StepView) -> str:
    after = f" (after {', '.join(step.depends_on)})" if step.depends_on else ""
    took = f", {step.elapsed_ms / 1000:.1f} s" if step.elapsed_ms else ""
    return f"- **{step.id}** {_heading(step.title)}{after}: {step.status}{took}"


def _step_blocks(step: StepView) -> Iterator[str]:
    yield f"### {step.id}: {_heading(step.title)}"
    for call in step.calls:
        yield code_block(_call_text(call), "console")
    for change in step.changes:
        yield f"`{change.path}` {change.status} (+{change.added_lines} −{change.deleted_lines})"
        if change.diff:
            yield code_block(change.diff, "diff")
    if step.said:
        yield step.said.strip()


def _call_text(call: CallView) -> str:
    subject = next((str(call.input[name]) for name in _SUBJECT_ARGUMENTS if call.input.get(name)), "")
    invocation = f"$ {subject}" if call.name == "run_command" else f"{call.name} {subject}".rstrip()
    ending = "" if call.status == "ok" else f"\n[{call.status}, exit code {call.exit_code}]"
    shown = "".join(f"\n{image.label}" for image in call.images)
    return f"{invocation}\n{call.output}".rstrip() + shown + ending


def code_block(text: str, language: str) -> str:
    """Return a fenced code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2) if "```" in text else 2
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _heading(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _TITLE_CHARS else words[: _TITLE_CHARS - 1] + "…"
