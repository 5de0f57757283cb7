"""The inputs of a run: the user's options, settings, session, budget and controls."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from agent.backends.shared import SharedBackend
from agent.config.load import LoadedSettings
from agent.config.settings import Settings
from agent.execution.approvals import PendingQuestions
from agent.execution.step.control import StepControl
from agent.model.budget import Budget
from agent.model.prices import PriceTable
from agent.orchestrator import Review
from agent.protocol.commands import Submit
from agent.run_scope import RunScope, SessionLocation
from agent.sessions.lock import LockTimeout
from agent.vocabulary.task_config import TaskConfig
from tooling.approvals.manifest import GivenManifest
from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    from agent.execution.result.structured import OutputSchema
    from agent.hooks.hook import Hook
    from agent.plugins.load import PluginSet
    from agent.skills.find import SkillSet


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of one run in addition to the settings; `resumes` is the id of the run to resume.

    A `shared_backend` keeps background commands and temporary files for the next run. `task` is the task's
    configuration; `hooks` are called in addition to the configured ones. With `is_strict` untrusted hooks are
    an error. `trace_id` is the trace of the run, if it is part of one, and
    `task_id` its task in the queue.
    """

    location: SessionLocation
    is_user_present: bool = False
    record: Path | None = None
    replay: Path | None = None
    output_schema: Path | None = None
    lock_timeout: LockTimeout = field(default_factory=LockTimeout)
    review: Review | None = None
    resumes: str | None = None
    shared_backend: SharedBackend | None = None
    manifest: GivenManifest | None = None
    task: TaskConfig = field(default_factory=TaskConfig)
    hooks: "tuple[Hook, ...]" = ()
    is_strict: bool = False
    trace_id: str = ""
    task_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindlassConfig:
    """Options of Windlass as a library; `settings` are named as in the settings file and override it.

    `cwd` is the folder to work in; without one the session gets an empty folder. `session_id` continues a session.
    An `ephemeral` session is deleted at the end. With `answers` the program answers approvals and questions;
    otherwise `on_approval` decides at once. `bare` ignores the user's settings file, memory and project notes. `task`
    configures every request: a repository, inputs, instructions. `trace_id` is the trace of callbacks,
    if any.
    """

    settings: Mapping[str, object] = field(default_factory=dict)
    profile: str | None = None
    cwd: Path | None = None
    extra_dirs: tuple[Path, ...] = ()
    session_id: str | None = None
    ephemeral: bool = False
    answers: bool = False
    bare: bool = False
    task: TaskConfig = field(default_factory=TaskConfig)
    hooks: "tuple[Hook, ...]" = ()
    environ: Mapping[str, str] | None = None
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The inputs for building a run: settings, session, budget, and the user's controls.

    `interrupt` ends the run with an exit code, a reason and a hint.
    """

    loaded: LoadedSettings
    settings: Settings
    environ: Mapping[str, str]
    options: RunOptions
    scope: RunScope
    questions: PendingQuestions
    control: StepControl
    budget: Budget
    prices: PriceTable
    output_schema: "OutputSchema | None"
    interrupt: Callable[[int, str, str], None]
    plugins: "PluginSet | None" = None
    skills: "SkillSet | None" = None

    @property
    def replans_given_plans(self) -> bool:
        """Whether a plan from a file may be replanned; only a flag allows it."""
        return self.loaded.origins["replan"].layer == "flag" and self.settings.replan != "never"

    def needs_model(self, submit: Submit) -> bool:
        """Whether a model may be needed: by the planner, by a task step, or to replan."""
        return submit.needs_model or (self.replans_given_plans and not submit.plan_only)
