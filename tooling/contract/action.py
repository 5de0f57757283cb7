"""The action of a tool call, the verdict on it, and the ports that judge and approve it."""

from collections.abc import Callable
from dataclasses import field
from enum import IntEnum
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass

Effect: TypeAlias = Literal["read", "write", "execute", "web", "ask", "note", "remember", "forget", "external"]
Scope: TypeAlias = Literal["once", "run", "project", "always"]


# `by` of an answer by the user or the reviewer model, or without asking; values of the event stream.
USER = "person"
REVIEWER = "reviewer"
VERDICT = "the verdict"


class Decision(IntEnum):
    """Allow < ask < block; the strictest wins."""

    ALLOW = 0
    ASK = 1
    BLOCK = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """The action of one call, as judges and users see it: the exact command, path, URL or query.

    `paths` are all files of a call that names several, `deletes` those of them that it deletes. `url` is the URL that
    the model chose; a call that uses only services configured by the user has none. `preview` computes the diff of an
    edit for the approval prompt; `is_requested` means that the user's request asks for exactly this action. `changed`
    describes the difference since the user allowed it: neither rules nor earlier answers apply then.
    """

    tool: str
    effect: Effect
    subject: str
    cwd: Path
    paths: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    is_requested: bool = False
    url: str = ""
    changed: str = ""
    preview: Callable[[], str] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What a reviewer thinks of an action that needs approval, and one sentence why."""

    verdict: Literal["allow", "ask", "deny"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A file that a simple command runs, such as a shell script or the makefile of `make`."""

    command: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision and the reasons for it; `rule` names the one that decided.

    `commands` are the simple commands found in a shell text, each as its canonical words; `commands_to_approve` are
    those that need approval, so that a rule for one of them never covers another. `is_only_network` means that the
    hosts they reach are the only reason for the verdict. `scripts` are the files of the workspace that they run: an
    approval applies to their current content. `only_reads` means that the action cannot change anything. `opinion` is
    the reviewer's, if there is one. `approved_by` names a user program that approved the action in the user's
    place; with `must_ask` neither a rule nor a mode replaces the user's answer.
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
    scripts: tuple[Script, ...] = ()
    only_reads: bool = False
    opinion: Opinion | None = None
    approved_by: str = ""
    must_ask: bool = False

    @property
    def involves(self) -> tuple[str, ...]:
        """Return every program, redirect target and host, as text for the user who decides."""
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
    """The answer to an approval request: from the user, a rule, the mode, or because no user is present.

    `remark` is passed on to the model. `scope` is how long an approval lasts; `command` is set if the user edited the
    command. A refusal that the user expects, as in plan mode, is not a failure of the run. `opinion` is the
    reviewer's, if only the reviewer was asked.
    """

    decision: Literal["allow", "deny", "defer", "fail"]
    by: str
    remark: str = ""
    rule: str = ""
    scope: Scope = "once"
    command: str | None = None
    is_failure: bool = True
    opinion: Opinion | None = None


class Judge(Protocol):
    """Judges an action without side effects; an error while judging counts as *ask* at least."""

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Return the strictest verdict that applies."""
        ...


# A rule of the run on top of the judge: returns the verdict, possibly stricter or milder.
Adjustment: TypeAlias = Callable[[Verdict, Action], Verdict]


class ActionGate(Protocol):
    """Judges a further action in the middle of a call, and asks for approval if needed."""

    async def refusal(self, action: Action, ctx: ExecCtx) -> str | None:
        """Return why the action is refused, as a message for the model, or None if it is allowed."""
        ...


class Approver(Protocol):
    """Decides on actions that write or execute or whose verdict is *ask*; blocked ones never reach it."""

    async def approve(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> ApprovalAnswer:
        """Wait for the decision; only the step that asked waits."""
        ...


class Reviewer(Protocol):
    """Looks at an action before the user is asked; it never decides on blocked ones."""

    async def review(self, action: Action, verdict: Verdict, ctx: ExecCtx) -> Opinion | None:
        """Return an opinion, or None if there is none in time."""
        ...
