"""One run as a page shows it: its plan with how each step stands, its calls and changes, its ending."""

from collections.abc import Mapping

from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import FileChange


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """One call of a tool; without an ending its status is `unfinished`.

    `output` is what the model read, or the whole where `output_file` says where that is kept. A check was run by the
    program itself, to see whether the step did what it should.
    """

    tool_id: str
    name: str
    input: Mapping[str, object]
    attempt: int = 1
    status: str = "unfinished"
    exit_code: int | None = None
    output: str = ""
    output_file: str | None = None
    is_check: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One step: what was planned and how it stands; `said` is the last thing its worker said."""

    id: str
    title: str
    type: str = "task"
    instruction: str = ""
    depends_on: tuple[str, ...] = ()
    verify: str = ""
    status: str = "pending"
    cache: str = "miss"
    attempts: int = 0
    summary: str = ""
    verified: bool | None = None
    evidence: tuple[str, ...] = ()
    cost_usd: float | None = None
    elapsed_ms: int = 0
    key: str | None = None
    calls: tuple[CallView, ...] = ()
    changes: tuple[FileChange, ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A plan that was made again: why, and what became different."""

    revision: int
    reason: str
    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run; without an ending `subtype` is `unfinished` and there is no exit code."""

    run_id: str
    session_id: str
    started_at: str
    updated_at: str
    model: str = ""
    cwd: str = ""
    backend: str = ""
    resumes: str | None = None
    request: str = ""
    revisions: tuple[Revision, ...] = ()
    steps: tuple[StepView, ...] = ()
    warnings: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    answer: str = ""
    subtype: str = "unfinished"
    exit_code: int | None = None
    verified: bool | None = None
    artifacts: tuple[str, ...] = ()
    permission_denials: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()
    duration_ms: int = 0
    usage: Usage | None = None
    resume: str | None = None
