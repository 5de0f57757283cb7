"""Runs a task in a child process of the real program, resuming what earlier attempts have begun.

A crash or a memory hog takes one task, not the worker. Questions and approvals of the run become records, and what is
answered there goes back to the run.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.protocol.codec import CodecError, from_json
from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    QuestionAnswered,
    QuestionAsked,
    RunCompleted,
)
from agent.service.agent_process import AgentProcess
from agent.service.engine import Questions
from agent.service.staging import PreparedTask, config_as_json
from agent.service.task import LOCAL_EXECUTOR, PendingQuestion, Task, TaskOutcome, TaskState
from agent.service.task_runs import find_runs, outcome_of
from agent.sessions.store import SessionStore
from agent.vocabulary import exit_codes
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject

_TICK_S = 0.5
_NO_ANSWER = (
    "(Nobody has answered in time. This is neither a yes nor a no: do what is safe without an answer, or stop.)"
)
_NOBODY = "nobody has answered in time"
# What a run that was staged before needs no more.
_STAGED = ("repo_url", "git_branch", "is_shallow", "input_files")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLimits:
    """How long a task may run, not counting the time it waits for answers, and how long a question waits."""

    task_s: float
    question_s: float


class LocalExecutor:
    """Starts the program, which `program` is the beginning of the command line of."""

    def __init__(
        self,
        *,
        program: Sequence[str],
        environ: Mapping[str, str],
        data: Path,
        questions: Questions,
        limits: LocalLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._program = tuple(program)
        self._environ = environ
        self._store = SessionStore(data)
        self._data = data
        self._questions = questions
        self._limits = limits
        self._clock = clock

    async def acquire(self, task: Task) -> tuple[str, str | None]:
        """Return where the task runs: in a process of its own on this machine."""
        return LOCAL_EXECUTOR, None

    async def release(self, task: Task, container_id: str | None, *, has_failed: bool) -> None:
        """There is nothing to release: the process has ended."""

    async def execute(self, prepared: PreparedTask, executor_url: str, container_id: str | None) -> TaskOutcome:
        """Run a task to its end."""
        task = prepared.task
        folder = self._store.open(task.session_id)
        before = await asyncio.to_thread(find_runs, folder, task.task_id)
        if before.outcome and before.outcome.state is TaskState.COMPLETED:
            # The worker was killed between the end of the run and the record of it.
            return before.outcome
        argv = (*self._program, "run", "--input-format", "stream-json", "--output-format", "stream-json")
        argv += ("--session", task.session_id, *prepared.flags)
        environ = {**self._environ, "AGENT_APPROVAL_TIMEOUT_S": str(self._limits.question_s + 60)}
        process = await AgentProcess.start(argv, environ, self._data)
        run = _DrivenRun(process, task, self._questions, self._limits, self._clock)
        try:
            outcome = await run.drive(_first_command(prepared, before.resumes))
        except BaseException:
            await asyncio.shield(process.end())
            raise
        code = await process.end()
        return outcome or _died(code, process.last_words)


def _first_command(prepared: PreparedTask, resumes: str) -> JsonObject:
    task = prepared.task
    ids = {"task_id": task.task_id, "trace_id": task.request.trace_id}
    config = config_as_json(prepared.config)
    if not resumes:
        return {"type": "request", "text": task.request.prompt, "config": config, **ids}
    kept = {name: value for name, value in config.items() if name not in _STAGED}
    return {"type": "resume", "run_id": resumes, "config": kept, **ids}


def _died(code: int, last_words: str) -> TaskOutcome:
    """Return the outcome of a process that ended without a result; it may have been killed, so it is tried again."""
    how = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
    said = f": {last_words.splitlines()[-1]}" if last_words else ""
    return TaskOutcome(
        state=TaskState.FAILED,
        exit_code=exit_codes.FAILED,
        error=f"the run {how} and reported nothing{said}",
        subtype="error_task",
        is_transient=True,
    )


class _DrivenRun:
    """One run: its events are followed, its questions recorded, and their answers sent to it."""

    def __init__(
        self,
        process: AgentProcess,
        task: Task,
        questions: Questions,
        limits: LocalLimits,
        clock: Callable[[], float],
    ) -> None:
        self._process = process
        self._task = task
        self._questions = questions
        self._limits = limits
        self._clock = clock
        self._open: dict[str, PendingQuestion] = {}
        self._outcome: TaskOutcome | None = None

    async def drive(self, first: JsonObject) -> TaskOutcome | None:
        """Send the request and follow the run; return its outcome, None if the process reported none."""
        await self._close_left_open()
        await self._process.send(first)
        following = asyncio.ensure_future(self._follow())
        watching = asyncio.ensure_future(self._watch())
        try:
            await asyncio.wait((following, watching), return_when=asyncio.FIRST_COMPLETED)
            for done in (following, watching):
                if done.done():
                    done.result()
        finally:
            following.cancel()
            watching.cancel()
            await asyncio.wait((following, watching))
            await self._close_left_open()
        return self._outcome

    async def _follow(self) -> None:
        async for line in self._process.events():
            try:
                envelope = from_json(line)
            except CodecError:
                continue
            await self._apply(envelope)
            if self._outcome:
                return

    async def _apply(self, envelope: Envelope) -> None:
        match envelope.event:
            case ApprovalRequested(decided=False) as asked:
                await self._record(_approval(asked, self._pending(envelope, asked.approval_id)))
            case QuestionAsked() as asked:
                await self._record(_question(asked, self._pending(envelope, asked.question_id)))
            case ApprovalResolved(approval_id=name) | QuestionAnswered(question_id=name):
                if self._open.pop(name, None):
                    await self._close(name)
            case RunCompleted() as result:
                self._outcome = outcome_of(result, envelope.run_id)
                await self._process.send({"type": "end"})
            case _:
                pass

    def _pending(self, envelope: Envelope, question_id: str) -> PendingQuestion:
        now = datetime.now(UTC)
        return PendingQuestion(
            question_id=question_id,
            task_id=self._task.task_id,
            session_id=self._task.session_id,
            kind="question",
            text="",
            asked_at=now,
            expires_at=now + timedelta(seconds=self._limits.question_s),
            step_id=envelope.step_id or "",
        )

    async def _record(self, question: PendingQuestion) -> None:
        if self._task.request.is_unattended:
            await self._send_answer(question)
            return
        self._open[question.question_id] = question
        await self._questions.open(self._task.task_id, question)

    async def _watch(self) -> None:
        """Send answers to the run, and end it when its time is over; time spent waiting for answers does not count."""
        left, before = self._limits.task_s, self._clock()
        while left > 0:
            await asyncio.sleep(_TICK_S)
            now = self._clock()
            left, before = (left if self._open else left - (now - before)), now
            if self._open:
                await self._send_answers()
        self._outcome = TaskOutcome(
            state=TaskState.FAILED,
            exit_code=exit_codes.TIMED_OUT,
            error=f"the time limit of {self._limits.task_s:g} s was reached",
            subtype="error_timeout",
        )

    async def _send_answers(self) -> None:
        for question in await self._questions.list(task_id=self._task.task_id, is_open=False):
            if question.question_id in self._open and question.state != "open":
                del self._open[question.question_id]
                await self._send_answer(question)
                if question.state == "expired":
                    await self._close(question.question_id)

    async def _send_answer(self, question: PendingQuestion) -> None:
        is_answered = question.state == "answered"
        if question.kind == "question":
            text = question.answer if is_answered else _NO_ANSWER
            await self._process.send({"type": "answer", "question_id": question.question_id, "answer": text})
            return
        decision: dict[str, object] = {"decision": question.answer if is_answered else "deny"}
        if is_answered and question.answer == "allow" and question.command is not None:
            decision = {"decision": "edit", "command": question.command}
        elif is_answered and question.answer == "allow" and question.remember:
            decision["remember"] = question.remember
        remark = question.remark if is_answered else _NOBODY
        await self._process.send({"type": "approve", "approval_id": question.question_id, "remark": remark, **decision})

    async def _close_left_open(self) -> None:
        """Close what an earlier process, or this one, leaves open: nothing waits for it any more."""
        self._open.clear()
        for question in await self._questions.list(task_id=self._task.task_id):
            await self._close(question.question_id)

    async def _close(self, question_id: str) -> None:
        await self._questions.close(self._task.task_id, question_id)


def _approval(asked: ApprovalRequested, pending: PendingQuestion) -> PendingQuestion:
    return replace(
        pending,
        kind="approval",
        text=asked.command,
        cwd=asked.cwd,
        reason=asked.reason,
        rule=asked.rule,
        tool=asked.tool or "",
        involves=asked.involves or (),
        diff=asked.diff or "",
    )


def _question(asked: QuestionAsked, pending: PendingQuestion) -> PendingQuestion:
    return replace(pending, text=asked.question, options=asked.options)
