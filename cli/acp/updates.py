"""Translates the events of a run into session updates of the Agent Client Protocol."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from acp import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from acp.helpers import ToolCallContentVariant, tool_diff_content
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    PlanEntry,
    PlanEntryStatus,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolKind,
    UserMessageChunk,
)

from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ApprovalRequested,
    FilesChanged,
    MessageAdded,
    PlanUpdated,
    RunCompleted,
    StepCompleted,
    StepStarted,
    TodoChanged,
    ToolCompleted,
    ToolOutput,
    ToolStarted,
    WarningRaised,
)
from agent.vocabulary.plan import LEAD, PlanStep
from agent.vocabulary.status import StepStatus, is_success
from cli.screen.format import call_subject
from tooling.contract.result import TaskItem

Update: TypeAlias = (
    AgentMessageChunk | AgentThoughtChunk | UserMessageChunk | AgentPlanUpdate | ToolCallStart | ToolCallProgress
)
_TITLE_CHARS = 200
_KINDS: Mapping[str, ToolKind] = {
    "run_command": "execute",
    "run_python": "execute",
    "manage_jobs": "execute",
    "read_file": "read",
    "list_directory": "read",
    "find_files": "search",
    "search_text": "search",
    "search_web": "search",
    "fetch_page": "fetch",
    "write_file": "edit",
    "edit_file": "edit",
    "apply_patch": "edit",
    "delete_file": "delete",
    "plan": "think",
    "manage_tasks": "think",
}
_TODO_STATUSES: Mapping[str, PlanEntryStatus] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
    "cancelled": "completed",
}


class UpdateBuilder:
    """Builds the updates of one session, event by event; with `is_replay` from a log, where requests are shown too.

    The text of the lead and of the final answer is the agent's message. Steps that run in parallel show their tool
    calls and their plan entry, not their text.
    """

    def __init__(self, cwd: Path, *, is_replay: bool = False) -> None:
        self._cwd = cwd
        self._is_replay = is_replay
        self._steps: tuple[PlanStep, ...] = ()
        self._statuses: dict[str, StepStatus | None] = {}
        self._todo: tuple[TaskItem, ...] = ()
        self._calls: dict[str, tuple[str, ToolStarted]] = {}
        # Content of the calls of this run: their output, then their changes.
        self._outputs: dict[str, list[ToolCallContentVariant]] = {}
        self._diffs: dict[str, list[ToolCallContentVariant]] = {}
        self._streamed = ""
        self._last_message = ""

    def build(self, envelope: Envelope) -> Iterator[Update]:
        """Yield the updates for one event."""
        step_id, event = envelope.step_id or "", envelope.event
        match event:
            case MessageAdded() if step_id in ("", LEAD):
                yield from self._message(event)
            case PlanUpdated(steps=steps):
                self._steps = tuple(step for step in steps if step.id != LEAD)
                yield from self._plan()
            case StepStarted():
                yield from self._step(step_id, None)
            case StepCompleted(status=status):
                yield from self._step(step_id, status)
            case TodoChanged(items=items):
                self._todo = items
                yield from self._plan()
            case ToolStarted():
                yield self._started(step_id, event)
            case ToolOutput(tool_id=tool_id, text=text):
                yield update_tool_call(tool_id, status="in_progress", content=[_text(text)])
            case FilesChanged(command_id=command_id):
                yield from self._files(step_id, command_id, event)
            case ToolCompleted():
                yield self._completed(event)
            case WarningRaised(message=message) if not self._is_replay:
                yield update_agent_thought_text(f"warning: {message}\n")
            case RunCompleted(result=result):
                yield from self._result(result)
            case _:
                pass

    def call_of(self, step_id: str, asked: ApprovalRequested) -> ToolCallProgress:
        """Return the tool call of an approval, with the action to approve."""
        tool_id = self._call_id(step_id, asked) or asked.approval_id
        path = str(self._cwd / asked.command)
        shown = [*diff_content(asked.diff, path)] if asked.diff else []
        note = f"{asked.reason}\n\n{asked.command}" if asked.reason else asked.command
        is_edit = bool(asked.diff)
        kind = _KINDS.get(asked.tool or "", "edit" if is_edit else "execute")
        return update_tool_call(
            tool_id,
            title=_shorten(asked.command),
            kind=kind,
            status="pending",
            content=[_text(note), *shown],
            locations=[ToolCallLocation(path=path)] if is_edit else None,
        )

    def _call_id(self, step_id: str, asked: ApprovalRequested) -> str:
        """Return the id of the step's newest open call with this command or file, or of this tool."""
        calls = [call for step, call in reversed(self._calls.values()) if step == step_id]
        exact = [call for call in calls if asked.command in call.input.values()]
        same_tool = [call for call in calls if call.name == asked.tool]
        return next((call.tool_id for call in (*exact, *same_tool, *calls)), "")

    def _message(self, event: MessageAdded) -> Iterator[Update]:
        match event:
            case MessageAdded(delta=True, role="thought", content=content):
                yield update_agent_thought_text(content)
            case MessageAdded(delta=True, role="assistant", content=content):
                self._streamed += content
                yield update_agent_message_text(content)
            case MessageAdded(role="assistant", content=content):
                if self._is_replay and event.reasoning:
                    yield update_agent_thought_text(event.reasoning)
                streamed, self._streamed = self._streamed, ""
                is_repeated = bool(content) and content == self._last_message and not streamed
                rest = content.removeprefix(streamed) if content.startswith(streamed) and not is_repeated else ""
                self._last_message = content or self._last_message
                if rest:
                    yield update_agent_message_text(rest)
            case MessageAdded(role="user", content=content) if self._is_replay:
                self._last_message = ""
                yield update_user_message_text(content)
            case _:
                pass

    def _result(self, answer: str) -> Iterator[Update]:
        """Show the answer, unless it equals the last message."""
        if answer.strip() and answer.strip() not in (self._last_message.strip(), self._streamed.strip()):
            yield update_agent_message_text(answer)
        self._streamed = self._last_message = ""
        self._steps, self._todo = (), ()
        for calls in (self._calls, self._outputs, self._diffs):
            calls.clear()

    def _step(self, step_id: str, status: StepStatus | None) -> Iterator[Update]:
        if step_id != LEAD:
            self._statuses[step_id] = status
            yield from self._plan()

    def _plan(self) -> Iterator[Update]:
        entries = [self._entry(step) for step in self._steps]
        entries += [plan_entry(item.content, status=_TODO_STATUSES.get(item.status, "pending")) for item in self._todo]
        if entries:
            yield update_plan(entries)

    def _entry(self, step: PlanStep) -> PlanEntry:
        if step.id not in self._statuses:
            return plan_entry(step.title, status="pending")
        status = self._statuses[step.id]
        if status is None:
            return plan_entry(step.title, status="in_progress")
        # The protocol has no failed entries.
        return plan_entry(step.title if is_success(status) else f"{step.title} ({status})", status="completed")

    def _started(self, step_id: str, event: ToolStarted) -> ToolCallStart:
        self._calls[event.tool_id] = (step_id, event)
        subject = _shorten(call_subject(event.input))
        title = subject if event.name == "run_command" and subject else f"{event.name} {subject}".strip()
        step = next((step.title for step in self._steps if step.id == step_id), "")
        path = event.input.get("path")
        return start_tool_call(
            event.tool_id,
            f"{step}: {title}" if step else title,
            kind=_KINDS.get(event.name, "other"),
            status="in_progress",
            locations=[ToolCallLocation(path=str(self._cwd / path))] if isinstance(path, str) else None,
            raw_input=_as_json(event.input),
        )

    def _files(self, step_id: str, command_id: str | None, event: FilesChanged) -> Iterator[Update]:
        """Show changes with the call that made them: file tools report them before they end, commands after."""
        open_ids = [call.tool_id for step, call in self._calls.values() if step == step_id]
        tool_id = command_id or (open_ids[-1] if open_ids else "")
        if not tool_id:
            return
        places = [(change, str(self._cwd / change.path)) for change in event.changes]
        blocks = [block for change, path in places for block in diff_content(change.diff, path)]
        shown = self._diffs[tool_id] = [*self._diffs.get(tool_id, ()), *blocks]
        locations = [ToolCallLocation(path=path) for _, path in places]
        yield update_tool_call(tool_id, content=[*self._outputs.get(tool_id, ()), *shown], locations=locations)

    def _completed(self, event: ToolCompleted) -> ToolCallProgress:
        self._calls.pop(event.tool_id, None)
        changes = self._diffs.get(event.tool_id, [])
        text = event.display or event.output
        # A diff is more informative than "edited a.txt".
        is_only_diff = bool(changes) and _KINDS.get(event.name) in ("edit", "delete")
        output = self._outputs[event.tool_id] = [_text(text)] if text and not is_only_diff else []
        return update_tool_call(
            event.tool_id,
            status="completed" if event.status == "ok" else "failed",
            content=[*output, *changes],
            raw_output={"status": event.status, "exit_code": event.exit_code, "output": event.output},
        )


def diff_content(diff: str, path: str) -> Iterator[ToolCallContentVariant]:
    """Yield a unified diff as diffs of the protocol, one for each hunk: the lines before and after, with context."""
    before: list[str] = []
    after: list[str] = []
    is_new, has_hunk = diff.startswith("--- /dev/null"), False
    for line in (*diff.splitlines(keepends=True), "@@"):
        if line.startswith("@@"):
            if has_hunk and (before or after):
                yield tool_diff_content(path, "".join(after), None if is_new else "".join(before))
            before, after, has_hunk = [], [], True
        elif has_hunk:
            _add_line(line, before, after)


def _add_line(line: str, before: list[str], after: list[str]) -> None:
    mark, text = line[:1], line[1:]
    if mark == "\\":
        # "No newline at end of file" refers to the line above.
        for side in (before, after):
            if side:
                side[-1] = side[-1].removesuffix("\n")
        return
    if mark in (" ", "-"):
        before.append(text)
    if mark in (" ", "+"):
        after.append(text)


def _text(text: str) -> ToolCallContentVariant:
    return tool_content(text_block(text))


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"


def _as_json(arguments: Mapping[str, object]) -> object:
    """Return arguments as plain JSON, even if the model's values are not."""
    return json.loads(json.dumps(dict(arguments), default=str))


def replay(envelopes: Sequence[Envelope], cwd: Path) -> Iterator[Update]:
    """Yield a logged conversation as updates."""
    builder = UpdateBuilder(cwd, is_replay=True)
    for envelope in envelopes:
        yield from builder.build(envelope)
