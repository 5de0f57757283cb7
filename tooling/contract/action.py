"""What a call is about to do, the verdict on it, and the port to the person who may allow it."""

from collections.abc import Callable
from dataclasses import field
from enum import IntEnum
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass

Effect: TypeAlias = Literal["read", "write", "execute", "web", "ask", "note", "remember", "forget"]
Scope: TypeAlias = Literal["once", "run", "project", "always"]


# `by` of an answer that the user gave; a value of the event stream.
USER = "person"


class Decision(IntEnum):
    """Allow < ask < block; the strictest wins."""

    ALLOW = 0
    ASK = 1
    BLOCK = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One call in the terms a judge and a person understand: the exact command, the target path, the address or query.

    `url` is the address that the model chose to ask; a call that asks only the user's own services has none.
    `preview` makes the diff of an edit, for the person who is asked; `is_asked_for` says that the request itself asks
    for exactly this.
    """

    tool: str
    effect: Effect
    subject: str
    cwd: Path
    is_requested: bool = False
    url: str = ""
    preview: Callable[[], str] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision and the reasons for it; `rule` names the one that decided.

    `commands` are the simple commands found in a shell text, each as its canonical words; `asking` are those of them
    that need approval, so that a rule for one of them never covers another. `is_only_network` says that nothing
    speaks against them but the hosts they name.
    """

    decision: Decision
    reasons: tuple[str, ...] = ()
    rule: str = ""
    commands: tuple[str, ...] = ()
    commands_to_approve: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    is_only_network: bool = False

    @property
    def involves(self) -> tuple[str, ...]:
        """Return every program, redirect target and host, each in words for the person who decides."""
        return (
            *(f"runs {program}" for program in self.programs),
            *(f"redirects to {target}" for target in self.targets),
            *(f"reaches {host}" for host in self.hosts),
        )

    @property
    def reason(self) -> str:
        """Return the reasons as one sentence."""
        return "; ".join(self.reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """What the person, the mode or the lack of a terminal said, and how the model is told.

    `scope` says how long an allowing answer holds; `command` is set when the person changed what is to be run.
    """

    decision: Literal["allow", "deny", "defer", "fail"]
    by: str
    remark: str = ""
    rule: str = ""
    scope: Scope = "once"
    command: str | None = None


class Judge(Protocol):
    """Judges an action without doing anything; an error while judging is at least *ask*."""

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Return the strictest verdict that applies."""
        ...


# A rule of the run on top of the judge: returns the verdict, possibly stricter or milder.
Adjustment: TypeAlias = Callable[[Verdict, Action], Verdict]


class ActionGate(Protocol):
    """Judges, and asks if need be, about a further action in the middle of a call."""

    async def refusal(self, action: Action, ctx: ExecCtx) -> str | None:
        """Return why the action may not be done, in words for the model, or None."""
        ...


class Approver(Protocol):
    """Decides on actions that write or execute or whose verdict is *ask*; blocked ones never get here."""

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Wait for the decision; only the asking step waits."""
        ...
