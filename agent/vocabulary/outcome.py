"""The outcome of a run."""

from collections.abc import Mapping
from dataclasses import field

from agent.vocabulary.plan import Plan
from agent.vocabulary.status import Subtype
from agent.vocabulary.step import ExecutorResponse
from agent.vocabulary.usage import Usage
from tooling.approvals.manifest import Manifest
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFile:
    """A file that a run left behind: its absolute `path`, and its `name` relative to the working folder."""

    path: str
    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnableFile:
    """A file that a tool runs, or takes orders from, when somebody uses the folder; `runs` says which and when."""

    path: str
    runs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Outcome of a run: status, answer, artifacts, cost and exit code.

    `files` are the artifacts that still exist, in `cwd`. `verified` is whether checks passed, None without any;
    `hint` suggests a fix for the error; `resume` is the command that resumes the run; `will_run` lists files left by
    commands that other tools run. `missing` is what the run's manifest does not grant, `manifest` the needs of a plan
    that was not executed.
    """

    subtype: Subtype
    exit_code: int
    answer: str
    plan: Plan | None = None
    responses: tuple[ExecutorResponse, ...] = ()
    artifacts: tuple[str, ...] = ()
    files: tuple[ArtifactFile, ...] = ()
    cwd: str = ""
    denials: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()
    will_run: tuple[RunnableFile, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model_usage: Mapping[str, Usage] = field(default_factory=dict)
    num_turns: int = 0
    duration_ms: int = 0
    structured: object | None = None
    error: str | None = None
    hint: str = ""
    verified: bool | None = None
    resume: str | None = None
    warnings: tuple[str, ...] = ()
    missing: Manifest | None = None
    manifest: Manifest | None = None
    effects_in_doubt: tuple[str, ...] = ()

    @property
    def is_error(self) -> bool:
        """Whether the run failed."""
        return self.exit_code != 0
