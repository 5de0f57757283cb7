"""Editing a plan in the user's editor: opened as TOML, validated on close, reopened or cancelled."""

import asyncio
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
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
from agent.plugins.find import load_full_catalog
from agent.vocabulary.errors import AgentError, LimitError
from agent.vocabulary.plan import Plan, PlanStep
from cli.external_programs import prefer_outside
from cli.run.flags import RunFlags
from cli.run.progress import print_stderr
from cli.screen.format import PLAN_CANCELLED
from tooling.files.temp_dir import TempDir

DEFAULT_EDITOR = "vi"
EDITOR_HINT = "set VISUAL or EDITOR to your editor"
HEADER = (
    "",
    "Change, add or remove steps; save and close to continue. A file without steps runs nothing.",
    "See docs/running-tasks.md#plan-files for all fields of a step.",
    "",
)
RETRY_PROMPT = "Edit again? [Y/n] "
EMPTY_PLAN = "the plan is empty, nothing was run"
EDIT_SAVED = "your edit is in "
REQUEST_CHANGED = "plan.toml: request: the task cannot be changed here; start again with another task"


class EditCancelled(AgentError):
    """The user decided not to run the plan, or the editor failed."""


class PlanEditor:
    """Opens a plan in an editor until it is valid or the user cancels."""

    def __init__(
        self,
        capabilities: Capabilities,
        environ: Mapping[str, str],
        *,
        ask: Callable[[str], str] = lambda question: _ask(question),
        report: Callable[[str], None] = print_stderr,
    ) -> None:
        self._capabilities = capabilities
        self._environ = environ
        self._editor = environ.get("VISUAL") or environ.get("EDITOR") or DEFAULT_EDITOR
        self._ask = ask
        self._report = report
        self._running: subprocess.Popen[bytes] | None = None
        # Whether the user is asked what to do with an invalid plan.
        self.is_asking = False

    def edit(self, steps: Sequence[PlanStep], request: str) -> tuple[PlanStep, ...]:
        """Return the edited steps, or raise EditCancelled if there is nothing to run."""
        # Removed by a later process if this one is killed while the editor is open.
        with TempDir() as folder:
            path = folder / "plan.toml"
            path.write_text(toml_text("", steps, head=(f"Request: {' '.join(request.split())}", *HEADER)), "utf-8")
            while True:
                self._open(path)
                try:
                    return self._read(path, request)
                except PlanFileError as problem:
                    self._report(f"error: {problem.message}")
                    if not self._should_retry():
                        raise EditCancelled(PLAN_CANCELLED, _keep(path)) from problem

    def stop(self) -> None:
        """Terminate the editor if it is still open."""
        if running := self._running:
            running.terminate()

    def _open(self, path: Path) -> None:
        # The editor needs a terminal; a redirected stdout is for the answer.
        out = None if sys.stdout.isatty() else sys.stderr
        try:
            with _ignore_sigint():
                # No shell in between: it would receive Ctrl-C along with the editor and exit.
                words = prefer_outside([*shlex.split(self._editor), str(path)], self._environ, Path.cwd())
                self._running = subprocess.Popen(words, stdout=out)
                code = self._running.wait()
                self._running = None
        except (OSError, ValueError) as error:
            problem = f"could not start the editor {self._editor!r}, nothing was run: {error}"
            raise EditCancelled(problem, EDITOR_HINT) from error
        if code:
            raise EditCancelled(f"the editor {self._editor!r} exited with {code}, nothing was run", EDITOR_HINT)

    def _read(self, path: Path, request: str) -> tuple[PlanStep, ...]:
        try:
            text = path.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise PlanFileError(f"could not read {path}: {error}") from error
        if not any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines()):
            raise EditCancelled(EMPTY_PLAN)
        plan = parse_plan(text, name="plan.toml", default_request=request, capabilities=self._capabilities)
        if plan.request != request:
            raise PlanFileError(REQUEST_CHANGED)
        return plan.steps

    def _should_retry(self) -> bool:
        self.is_asking = True
        try:
            return self._ask(RETRY_PROMPT).strip().lower() in ("", "y", "yes")
        except EOFError:
            return False
        finally:
            self.is_asking = False


def _ask(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line


@contextmanager
def _ignore_sigint() -> Iterator[None]:
    """Ignore Ctrl-C, which the terminal sends to us as well as to the editor."""
    try:
        before = signal.signal(signal.SIGINT, lambda number, frame: None)
    except ValueError:
        # Only the main thread may set handlers; in other threads the event loop handles signals.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _keep(edited: Path) -> str:
    """Copy an unused edit to a folder that is not cleaned up; return a hint that names it."""
    if not edited.exists():
        return ""
    kept = Path(tempfile.mkdtemp(prefix="windlass-plan-")) / edited.name
    shutil.copyfile(edited, kept)
    return f"{EDIT_SAVED}{kept}"


def load_plan(flags: RunFlags, settings: Settings, environ: Mapping[str, str]) -> PlanFile:
    """Load the plan of `--plan`, or raise InputError or LimitError before anything has run."""
    capabilities = plan_capabilities(settings, environ)
    given = read_plan_file(flags.plan or Path(), capabilities)
    if flags.edit:
        editor = PlanEditor(capabilities, environ)
        given = replace(given, steps=editor.edit(given.steps, flags.prompt or given.request))
    check_step_limit(len(given.steps), settings)
    return given


def plan_capabilities(settings: Settings, environ: Mapping[str, str]) -> Capabilities:
    """Return the tools and profiles that steps can use."""
    tools = {spec.name: spec for spec in load_full_catalog(environ, settings).specs}
    return Capabilities(tools=tools, profiles=Dispatcher(settings, tuple(tools)).profiles)


def check_step_limit(count: int, settings: Settings) -> None:
    """Refuse a plan with more steps than the limit: a plan file runs completely or not at all."""
    if count > settings.max_steps:
        raise LimitError(too_many_steps(count, settings.max_steps), f"raise the limit with --max-steps {count}")


def too_many_steps(count: int, limit: int) -> str:
    return f"the plan has {count} steps, the limit is {limit}"


class PlanReview:
    """Lets the user edit the plan of a run, which waits meanwhile."""

    def __init__(self, *, settings: Settings, environ: Mapping[str, str], request: str) -> None:
        self._settings = settings
        self._request = request
        self._editor = PlanEditor(plan_capabilities(settings, environ), environ)
        self._is_editing = False

    @property
    def is_open(self) -> bool:
        """Whether the editor owns the terminal, so that Ctrl-C is meant for it."""
        return self._is_editing and not self._editor.is_asking

    async def __call__(self, plan: Plan) -> Plan:
        """Return the edited plan."""
        if plan.answer is not None:
            return plan
        self._is_editing = True
        try:
            steps = await asyncio.to_thread(self._editor.edit, plan.steps, self._request)
        finally:
            self._editor.stop()
            # A signal sent while the editor was open is handled before this returns.
            await asyncio.sleep(0)
            self._is_editing = False
        check_step_limit(len(steps), self._settings)
        return replace(plan, steps=topological_order(steps))
