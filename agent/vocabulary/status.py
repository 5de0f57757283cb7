"""The final statuses of steps and runs."""

from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass

StepStatus: TypeAlias = Literal["ok", "partial", "needs_input", "error", "timeout", "blocked", "skipped", "cancelled"]
Subtype: TypeAlias = Literal[
    "success",
    "partial",
    "error_task",
    "error_auth",
    "error_input",
    "error_sandbox",
    "error_config",
    "error_limit",
    "error_tool",
    "error_untrusted",
    "error_budget",
    "error_approval",
    "error_unverified",
    "error_provider",
    "error_busy",
    "error_timeout",
    "error_interrupted",
]

# How the error of a run begins whose lead answered, although some of its work is missing.
INCOMPLETE = "the task is incomplete: "
SUCCESS = frozenset({"ok", "partial"})


def is_success(status: str) -> bool:
    """Whether dependents of a step with this status may run."""
    return status in SUCCESS


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCounts:
    """The number of steps per kind of result."""

    ok: int = 0
    failed: int = 0
    skipped: int = 0
