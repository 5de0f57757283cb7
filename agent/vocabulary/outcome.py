"""The outcome of a run."""

from collections.abc import Mapping
from dataclasses import field

from agent.vocabulary.plan import Plan
from agent.vocabulary.status import Subtype
from agent.vocabulary.step import ExecutorResponse
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run ended: status, answer, artifacts, cost and exit code.

    `verified` tells whether checks passed, None without any; `hint` tells what to do about the error; `resume` is the
    command that resumes the run.
    """

    subtype: Subtype
    exit_code: int
    answer: str
    plan: Plan | None = None
    responses: tuple[ExecutorResponse, ...] = ()
    artifacts: tuple[str, ...] = ()
    denials: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()
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

    @property
    def is_error(self) -> bool:
        """Whether the run failed."""
        return self.exit_code != 0
