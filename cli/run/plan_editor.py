"""A plan in the person's own editor: opened as TOML, checked when it is closed, opened again or given up."""

import asyncio
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agent.config.settings import Settings
from agent.dispatcher import Dispatcher
from agent.planning.capabilities import Capabilities
from agent.planning.graph import topological_order
from agent.planning.plan_file import PlanFile, PlanFileError, parse_plan, read_plan_file
from agent.planning.plan_text import toml_text
from agent.vocabulary.errors import AgentError, LimitError
from agent.vocabulary.plan import Plan, PlanStep
from cli.run.flags import RunFlags
from cli.run.progress import print_stderr
from tooling.tool_catalog import load_catalog

DEFAULT_EDITOR = "vi"
# A signal that came while the editor was open may be looked at after it has closed.
_SIGNAL_DELAY_S = 0.2
_EDITOR_HINT = "set VISUAL or EDITOR to the editor you use"
_HEADER = (
    "",
    "Change, add or remove steps; save and close to go on. A file without steps runs nothing.",
    "docs/running-tasks.md#plan-files has all the fields of a step.",
    "",
)


class EditCancelled(AgentError):
    """The person decided not to run the plan."""


class PlanEditor:
    """Lets a person change a plan until it can be run, or give it up."""

    def __init__(
        self,
        means: Capabilities,
        environ: Mapping[str, str],
        *,
        ask: Callable[[str], str] = lambda question: _ask(question),
        tell: Callable[[str], None] = print_stderr,
    ) -> None:
        self._means = means
        self._editor = environ.get("VISUAL") or environ.get("EDITOR") or DEFAULT_EDITOR
        self._ask = ask
        self._print = tell
        self._running: subprocess.Popen[bytes] | None = None
        self._closed_at = float("-inf")

    def edit(self, steps: Sequence[PlanStep], request: str) -> tuple[PlanStep, ...]:
        """Return the steps as the person wants them; raises EditCancelled when there is nothing to run."""
        folder = Path(tempfile.mkdtemp(prefix="windlass-plan-"))
        path = folder / "plan.toml"
        path.write_text(toml_text("", steps, head=(f"Request: {' '.join(request.split())}", *_HEADER)), "utf-8")
        is_kept = False
        try:
            while True:
                self._open(path)
                try:
                    return self._read(path, request)
                except PlanFileError as problem:
                    self._print(f"error: {problem.message}")
                    if self._should_retry():
                        continue
                    is_kept = path.exists()
                    hint = f"your edit is in {path}" if is_kept else ""
                    raise EditCancelled("the plan was given up, nothing was run", hint) from problem
        finally:
            if not is_kept:
                shutil.rmtree(folder, ignore_errors=True)

    @property
    def is_open(self) -> bool:
        """Say whether the person is in the editor, or was when they pressed a key that is only heard now."""
        return self._running is not None or time.monotonic() - self._closed_at < _SIGNAL_DELAY_S

    def stop(self) -> None:
        """End an editor that is still open."""
        if running := self._running:
            running.terminate()

    def _open(self, path: Path) -> None:
        # The answer belongs to stdout; an editor needs a terminal.
        out = None if sys.stdout.isatty() else sys.stderr
        try:
            with _ignore_sigint():
                # Without a shell between: one that hears Ctrl-C with its editor would end with it.
                self._running = subprocess.Popen([*shlex.split(self._editor), str(path)], stdout=out)
                code = self._running.wait()
                self._closed_at = time.monotonic()
                self._running = None
        except (OSError, ValueError) as error:
            raise EditCancelled(
                f"the editor {self._editor!r} cannot be started, nothing was run: {error}", _EDITOR_HINT
            ) from error
        if code:
            raise EditCancelled(
                f"the editor {self._editor!r} ended with exit code {code}, nothing was run", _EDITOR_HINT
            )

    def _read(self, path: Path, request: str) -> tuple[PlanStep, ...]:
        try:
            text = path.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise PlanFileError(f"{path} cannot be read: {error}") from error
        if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
            raise EditCancelled("the plan was emptied, nothing was run")
        found = parse_plan(text, name="plan.toml", default_request=request, means=self._means)
        if found.request != request:
            raise PlanFileError("plan.toml: request: the task itself cannot be changed here; start again with another")
        return found.steps

    def _should_retry(self) -> bool:
        try:
            return self._ask("edit it again? [Y/n] ").strip().lower() in ("", "y", "yes")
        except EOFError:
            return False


def _ask(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


@contextmanager
def _ignore_sigint() -> Iterator[None]:
    """Leave Ctrl-C to the editor, which shares the terminal with us."""
    try:
        before = signal.signal(signal.SIGINT, lambda number, frame: None)
    except ValueError:
        # Only the main thread may; elsewhere somebody else minds the signals.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def load_plan(flags: RunFlags, settings: Settings, environ: Mapping[str, str]) -> PlanFile:
    """Return the plan of `--plan`; raises InputError or LimitError before anything has run."""
    means = means_of(settings)
    given = read_plan_file(flags.plan or Path(), means)
    if flags.edit:
        given = replace(given, steps=PlanEditor(means, environ).edit(given.steps, flags.prompt or given.request))
    check_step_limit(len(given.steps), settings)
    return given


def means_of(settings: Settings) -> Capabilities:
    """Return what steps can use under these settings."""
    tools = {spec.name: spec for spec in load_catalog().specs}
    return Capabilities(tools=tools, profiles=Dispatcher(settings, tuple(tools)).profiles)


def check_step_limit(count: int, settings: Settings) -> None:
    """Refuse a plan that is longer than the limit: a file is run whole or not at all."""
    if count > settings.max_steps:
        problem = f"the plan has {count} steps and the limit is {settings.max_steps}"
        raise LimitError(problem, f"raise it with --max-steps {count}")


class PlanReview:
    """Opens the editor while the run waits; nothing else is going on then."""

    def __init__(self, *, settings: Settings, environ: Mapping[str, str], request: str) -> None:
        self._settings = settings
        self._request = request
        self._editor = PlanEditor(means_of(settings), environ)

    @property
    def is_open(self) -> bool:
        """Say whether the terminal belongs to the editor now, and Ctrl-C with it."""
        return self._editor.is_open

    async def __call__(self, plan: Plan) -> Plan:
        """Return the plan as the person wants it."""
        if plan.answer is not None:
            return plan
        try:
            steps = await asyncio.to_thread(self._editor.edit, plan.steps, self._request)
        finally:
            self._editor.stop()
        check_step_limit(len(steps), self._settings)
        return replace(plan, steps=topological_order(steps))
