"""Effects outside the workspace, folded from the log: their start and their result."""

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    from agent.protocol.events import EffectRecorded

EffectKind: TypeAlias = Literal["request", "command", "connection", "callback", "upload", "message"]
EffectStatus: TypeAlias = Literal["started", "done", "failed", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRecord:
    """One effect; `effect_id` is its idempotency key, `call_id` its tool call.

    A safe effect only reads, so it may be repeated. The model knows the result of a settled one.
    """

    effect_id: str
    kind: EffectKind
    target: str
    status: EffectStatus
    call_id: str | None = None
    is_safe: bool = False
    is_settled: bool = False
    step_id: str | None = None
    run_id: str = ""
    started_at: str = ""
    ended_at: str | None = None

    @property
    def is_in_doubt(self) -> bool:
        """Whether it is unknown if the effect happened."""
        return not (self.is_safe or self.is_settled) and self.status in ("started", "failed")


class EffectFold:
    """Accumulates the effects of the runs of a chain, by their keys."""

    def __init__(self) -> None:
        self.records: dict[str, EffectRecord] = {}

    def record(self, event: "EffectRecorded", *, run_id: str, step_id: str | None, ts: str) -> None:
        """Apply one record: the start of an effect, or its end."""
        known = self.records.get(event.effect_id)
        if known is None or event.status == "started":
            self.records[event.effect_id] = EffectRecord(
                effect_id=event.effect_id,
                kind=event.kind,
                target=event.target,
                status=event.status,
                call_id=event.call_id,
                is_safe=event.safe,
                step_id=step_id,
                run_id=run_id,
                started_at=ts,
            )
        else:
            is_settled = event.status == "skipped" or known.is_settled
            self.records[event.effect_id] = replace(known, status=event.status, is_settled=is_settled, ended_at=ts)

    def settle(self, run_id: str, step_id: str | None, call_id: str) -> None:
        """Record that the result of a call is in the log; a later run may have refused to repeat the call."""
        for effect_id, record in self.records.items():
            if (record.run_id, record.step_id, record.call_id) == (run_id, step_id, call_id):
                self.records[effect_id] = replace(record, is_settled=True)

    @property
    def is_settled(self) -> bool:
        """Whether the results of all effects are known."""
        return all(record.is_settled for record in self.records.values())
