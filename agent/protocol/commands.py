"""Wishes, in the imperative: what a front end asks of the work."""

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveApproval:
    """Answer an `approval.requested` by its id."""

    approval_id: str
    decision: Literal["allow", "deny"]
    scope: Literal["once", "run"] = "once"
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuestion:
    """Answer a `question.asked` by its id."""

    question_id: str
    answer: str


Command: TypeAlias = ResolveApproval | AnswerQuestion
