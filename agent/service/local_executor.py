"""Runs a task in a child process of this program, resuming earlier attempts.

A crash or excessive memory use costs one task, not the worker. Questions and approvals of the run become records, and
their answers are sent to the run.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent.protocol.codec import CodecError, from_json
from agent.protocol.envelope import Envelope
from agent.protocol.events import RunCompleted
from agent.service.agent_process import AgentProcess
from agent.service.engine import Questions
from agent.service.run_questions import RunQuestions
from agent.service.staging import PreparedTask, config_as_json
from agent.service.task import LOCAL_EXECUTOR, PendingQuestion, Task, TaskOutcome, TaskState
from agent.service.task_runs import find_runs, outcome_of
from agent.sessions.store import SessionFolder, SessionStore
from agent.vocabulary import exit_codes
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject

_TICK_S = 0.5
# Configuration fields that a staged run no longer needs.
_STAGED = ("repo_url", "git_branch", "is_shallow", "input_files")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLimits:
    """Time limits: of a task, not counting the time it waits for answers, and of a question."""

    task_s: float
    question_s: float


class LocalExecutor:
    """Starts the program; `program` is the beginning of its command line, `tell` learns what tasks wait for."""

    def __init__(
        self,
        *,
        program: Sequence[str],
        environ: Mapping[str, str],
        data: Path,
        questions: Questions,
        limits: LocalLimits,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[PendingQuestion], None] = lambda question: None,
    ) -> None:
        self._tell = tell
        self._program = tuple(program)
        self._environ = environ
        self._store = SessionStore(data)
        self._data = data
        self._questions = questions
        self._limits = limits
        self._clock = clock

    async def acquire(self, task: Task) -> tuple[str, str | None]:
        """Return the local address: the task runs in its own process on this machine."""
        return LOCAL_EXECUTOR, None

    async def release(self, task: Task, container_id: str | None, *, has_failed: bool) -> None:
        """Do nothing: the process has ended."""

    async def execute(self, prepared: PreparedTask, executor_url: str, container_id: str | None) -> TaskOutcome:
        """Run a task until it ends."""
        task = prepared.task
        folder = self._store.open(task.session_id)
        before = await asyncio.to_thread(find_runs, folder, task.task_id)
        if before.outcome and before.outcome.state is TaskState.COMPLETED:
            # The worker was killed after the run ended but before its outcome was recorded.
            return before.outcome
        argv = (*self._program, "run", "--input-format", "stream-json", "--output-format", "stream-json")
        argv += ("--session", task.session_id, *prepared.flags)
        environ = {**self._environ, "AGENT_APPROVAL_TIMEOUT_S": str(self._limits.question_s + 60)}
        process = await AgentProcess.start(argv, environ, self._data)
        asked = RunQuestions(process, task, self._questions, self._limits.question_s, self._tell)
        run = _DrivenRun(process, asked, self._limits.task_s, self._clock)
        try:
            outcome = await run.drive(_first_command(prepared, before.resumes), folder)
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
    """Return the outcome of a process that ended without a result; it may have been killed, so it is retried."""
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
    """One run: follows its events and sends answers to its questions."""

    def __init__(
        self, process: AgentProcess, questions: RunQuestions, limit_s: float, clock: Callable[[], float]
    ) -> None:
        self._process = process
        self._questions = questions
        self._limit_s = limit_s
        self._clock = clock
        self._outcome: TaskOutcome | None = None

    async def drive(self, first: JsonObject, folder: SessionFolder) -> TaskOutcome | None:
        """Send the request and follow the run; return its outcome, or None if the process reported none."""
        await self._questions.begin(folder)
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
        # Not if this is cancelled: what is asked now is asked again by the worker that resumes the run.
        await self._questions.close()
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
        if isinstance(envelope.event, RunCompleted):
            self._outcome = outcome_of(envelope.event, envelope.run_id)
            await self._process.send({"type": "end"})
        else:
            await self._questions.apply(envelope)

    async def _watch(self) -> None:
        """Send answers to the run, and stop it at its time limit; time spent waiting for answers does not count."""
        left, before = self._limit_s, self._clock()
        while left > 0:
            await asyncio.sleep(_TICK_S)
            now = self._clock()
            left, before = (left if self._questions.is_waiting else left - (now - before)), now
            await self._questions.send_answers()
        self._outcome = TaskOutcome(
            state=TaskState.FAILED,
            exit_code=exit_codes.TIMED_OUT,
            error=f"the time limit of {self._limit_s:g} s was reached",
            subtype="error_timeout",
        )
