"""The address of a step's result: everything that decided it, and nothing that did not."""

import hashlib
import json
from collections.abc import Sequence
from typing import Protocol

from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorProfile, ExecutorResponse
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import encode


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySource:
    """What all steps of a run share, as far as it decides their results.

    `lineage` is the first run of a chain of resumed ones: results are never taken from another chain, because the
    world may have changed between the two.
    """

    lineage: str
    model: str
    request: str
    context: str = ""


def provisional_key(key: str, response: ExecutorResponse) -> str:
    """Return the key of a result that does not stand: what was made of it is found again only after the same one."""
    parts = (key, response.status, response.text, response.summary)
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


def cache_key(source: KeySource, step: PlanStep, profile: ExecutorProfile, dependencies: Sequence[str]) -> str:
    """Return the key; `dependencies` are the keys of the results the step was given, in the plan's order."""
    parts = (
        (source.lineage, step.model or source.model, source.request, source.context),
        (step.id, step.type, step.instruction, step.tool, encode(step.args), step.expect, step.verify),
        (step.ask_question, step.ask_options, profile.name, profile.allowed_tools),
        tuple(dependencies),
    )
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


class StepCache(Protocol):
    """Results by key; a result is on disk before its step is reported done."""

    def get(self, key: str) -> ExecutorResponse | None:
        """Return the result of a step that was asked for exactly this, or None."""
        ...

    async def put(self, key: str, response: ExecutorResponse) -> None:
        """Store a successful result so that it survives a crash from now on. Raises OSError when it does not."""
        ...


class NoStepCache:
    """Keeps nothing: for runs that leave nothing behind."""

    def get(self, key: str) -> ExecutorResponse | None:
        """Return nothing."""
        return None

    async def put(self, key: str, response: ExecutorResponse) -> None:
        """Forget the result."""
