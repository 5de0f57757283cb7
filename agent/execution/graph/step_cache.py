"""The cache of step results: its key, a hash of everything that determines a result, and its port."""

import hashlib
from collections.abc import Sequence
from typing import Protocol

from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorProfile, ExecutorResponse
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import encode
from tooling.contract.json_text import json_encoder

_to_text = json_encoder(sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySource:
    """The inputs that all steps of a run share.

    `lineage` is the first run of a chain of resumed runs: results are never reused across chains, because files and
    the outside world may have changed in between.
    """

    lineage: str
    model: str
    request: str
    context: str = ""


def provisional_key(key: str, response: ExecutorResponse) -> str:
    """Return the key of a result that is not final: its dependents are cache hits only after an identical result."""
    parts = (key, response.status, response.text, response.summary)
    return hashlib.sha256(_to_text(parts).encode("utf-8", "surrogatepass")).hexdigest()


def cache_key(source: KeySource, step: PlanStep, profile: ExecutorProfile, dependencies: Sequence[str]) -> str:
    """Return the key; `dependencies` are the keys of the results given to the step, in plan order."""
    parts = (
        (source.lineage, step.model or profile.model or source.model, source.request, source.context),
        (step.id, step.type, step.instruction, step.tool, encode(step.args), step.expect, step.verify),
        (step.ask_question, step.ask_options, profile.name, profile.allowed_tools),
        tuple(dependencies),
    )
    return hashlib.sha256(_to_text(parts).encode("utf-8", "surrogatepass")).hexdigest()


class StepCache(Protocol):
    """Results by key; a result is on disk before its step is reported done."""

    def get(self, key: str) -> ExecutorResponse | None:
        """Return the stored result, or None."""
        ...

    async def put(self, key: str, response: ExecutorResponse) -> None:
        """Store a successful result durably; raises OSError if that fails."""
        ...


class NoStepCache:
    """Stores nothing, for runs that are not saved."""

    def get(self, key: str) -> ExecutorResponse | None:
        return None

    async def put(self, key: str, response: ExecutorResponse) -> None:
        pass
