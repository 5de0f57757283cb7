"""`--input-format stream-json`: a program drives a session, commands in and events out."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from signal import Signals
from typing import TypeAlias

from agent.app import App
from agent.backends.shared import SharedBackend
from agent.config.load import LoadedSettings
from agent.protocol.codec import CodecError
from agent.protocol.command_lines import End, Interrupt, LineCommand, ResumeRun, parse_command
from agent.protocol.commands import AnswerQuestion, Detach, ResolveApproval, Steer, Submit
from agent.protocol.envelope import Envelope
from agent.protocol.events import ErrorRaised
from agent.run_context import RunOptions
from agent.sessions.resume.lookup import find_resumable_run
from agent.sessions.store import SessionStore
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError
from cli.run.flags import RunFlags
from cli.run.input_lines import MAX_LINE_BYTES, InputLines
from cli.run.listener import Listener
from cli.run.result_output import write_failure, write_result
from cli.run.resume_target import check_manifest, check_unfinished
from cli.run.stdout import LineWriter, event_line

# Exit code and reason of a run that a signal ends.
SignalEndings: TypeAlias = Mapping[Signals, tuple[int, str]]
MAX_QUEUED = 100
TOO_LONG = f"longer than {MAX_LINE_BYTES:,} bytes"
NOTHING_RUNS = "no request is running"
QUEUE_IS_FULL = f"more than {MAX_QUEUED} requests are waiting"
AFTER_END = "requests are not accepted after end"


def run_stream_session(
    *,
    loaded: LoadedSettings,
    environ: Mapping[str, str],
    options: RunOptions,
    flags: RunFlags,
    signals: SignalEndings,
) -> int:
    """Run the requests that arrive on stdin, each as a run of one session; return the exit code of the last one."""

    async def run() -> int:
        session = StreamSession(loaded=loaded, environ=environ, options=options, flags=flags)
        for number, ending in signals.items():
            asyncio.get_running_loop().add_signal_handler(number, session.stop, *ending)
        return await session.run()

    return asyncio.run(run())


class StreamSession:
    """Runs requests one after another; answers and controls go to the running one."""

    def __init__(
        self, *, loaded: LoadedSettings, environ: Mapping[str, str], options: RunOptions, flags: RunFlags
    ) -> None:
        self._loaded = loaded
        self._environ = environ
        self._options = options
        self._flags = flags
        self._writer = LineWriter()
        self._backend = SharedBackend()
        self._pending: deque[Submit | ResumeRun] = deque()
        self._app: App | None = None
        self._is_busy = False
        # A stop request that arrived before the run could receive it.
        self._interruption: tuple[int, str] | None = None
        self._is_ending = self._is_detached = self._is_stopped = False
        self._session_id = options.location.session_id
        # Until a request has run.
        self._exit_code = exit_codes.OK
        self._stop_code: int | None = None
        self._has_run = False
        self._rejected = 0
        self._changed = asyncio.Event()

    async def run(self) -> int:
        """Run until the end of the input, or a signal."""
        reading = asyncio.ensure_future(self._read())
        try:
            while (request := await self._next_request()) is not None:
                self._exit_code = await self._run_request(request)
        finally:
            reading.cancel()
            await asyncio.wait([reading])
            await self._backend.close()
        return self._stop_code or self._exit_code

    def stop(self, exit_code: int, reason: str) -> None:
        """Stop the session with the current run."""
        self._is_stopped = True
        self._stop_code = exit_code
        self._interrupt(exit_code, reason)
        self._changed.set()

    async def _next_request(self) -> Submit | ResumeRun | None:
        while not self._is_stopped:
            if self._pending:
                return self._pending.popleft()
            if self._is_ending:
                break
            self._changed.clear()
            await self._changed.wait()
        return None

    async def _run_request(self, request: Submit | ResumeRun) -> int:
        """Run one request and return its exit code; an error that prevents its start is its result, too."""
        self._is_busy = self._has_run = True
        submit = request if isinstance(request, Submit) else Submit(prompt="")
        try:
            # In a thread: waiting for a busy session must not keep interrupts from being read.
            app = self._app = await asyncio.to_thread(self._open_app, request)
            self._session_id = app.scope.folder.id
            if self._is_detached:
                app.send(Detach())
            if self._interruption:
                app.interrupt(*self._interruption)
            listener = Listener(app=app, flags=self._flags, environ=self._environ, stream=self._writer)
            listening = asyncio.ensure_future(listener.listen(app.subscribe()))
            try:
                outcome = await app.run(submit)
            finally:
                await listener.finish(listening)
        except AgentError as error:
            return write_failure(error, is_stream=True)
        finally:
            self._app, self._is_busy, self._interruption = None, False, None
        if listener.write_error:
            self._is_stopped = True
        return write_result(self._flags, outcome, listener, submit.prompt)

    def _open_app(self, request: Submit | ResumeRun) -> App:
        location = replace(self._options.location, session_id=self._session_id)
        resumes = None
        if isinstance(request, ResumeRun):
            found = check_unfinished(find_resumable_run(SessionStore(location.data_dir), request.run_id))
            check_manifest(found.run, is_given=self._options.manifest is not None)
            location, resumes = replace(location, session_id=found.folder.id, cwd=found.cwd), found.run.run_id
        options = replace(
            self._options,
            location=location,
            is_user_present=not self._is_detached,
            shared_backend=self._backend,
            task=request.config or self._options.task,
            resumes=resumes,
            task_id=request.task_id,
            trace_id=request.trace_id,
        )
        return App(loaded=self._loaded, environ=self._environ, options=options)

    async def _read(self) -> None:
        """Execute the commands on stdin; after its end no more answers arrive."""
        number = 0
        async for line in InputLines():
            number += 1
            if line is not None and not line.strip():
                continue
            try:
                problem = TOO_LONG if line is None else self._carry_out(parse_command(line))
            except CodecError as error:
                problem = str(error)
            if problem:
                await self._reject(number, problem)
        self._is_ending = self._is_detached = True
        if self._app:
            self._app.send(Detach())
        self._changed.set()

    def _carry_out(self, command: LineCommand) -> str:
        """Execute a command; return why that failed, or an empty string."""
        match command:
            case Submit() | ResumeRun():
                return self._enqueue(command)
            case End():
                self._is_ending = True
                self._changed.set()
                return ""
            case Interrupt():
                return "" if self._interrupt(exit_codes.INTERRUPTED, "interrupted") else NOTHING_RUNS
            case Steer():
                return "" if self._app and self._app.send(command) else NOTHING_RUNS
            case ResolveApproval(approval_id=waiting) | AnswerQuestion(question_id=waiting):
                return "" if self._app and self._app.send(command) else f"nothing waits for {waiting}"

    def _enqueue(self, request: Submit | ResumeRun) -> str:
        if self._is_ending:
            return AFTER_END
        if len(self._pending) >= MAX_QUEUED:
            return QUEUE_IS_FULL
        self._pending.append(request)
        self._changed.set()
        return ""

    def _interrupt(self, exit_code: int, reason: str) -> bool:
        if not self._is_busy:
            return False
        self._interruption = (exit_code, reason)
        if self._app:
            self._app.interrupt(exit_code, reason)
        return True

    async def _reject(self, number: int, problem: str) -> None:
        """Report a line that was not executed, as an event outside of any run."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._rejected += 1
        if not self._has_run:
            self._exit_code = exit_codes.BAD_INPUT
        error = ErrorRaised(message=f"line {number} of stdin: {problem}", exit_code=exit_codes.OK)
        envelope = Envelope(seq=self._rejected, ts=now, session_id=self._session_id or "", run_id="", event=error)
        try:
            await self._writer.write(event_line(envelope))
        except OSError:
            self.stop(exit_codes.TERMINATED, "stdout was closed")
