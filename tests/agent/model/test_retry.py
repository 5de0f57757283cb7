"""Retries follow the fault table."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial

import pytest

from agent.model.faults import FAULTS, FaultKind, ModelFault
from agent.model.port import ModelReply, ModelRequest, StreamItem, StreamRestarted, TextDelta
from agent.model.retry import RetryingClient
from agent.vocabulary.message import Message
from agent.vocabulary.usage import Usage

REQUEST = ModelRequest(model="m", messages=(Message(role="user", content="hi"),))
REPLY = ModelReply(message=Message(role="assistant", content="yes"), usage=Usage(requests=1), model="m")


class FaultyClient:
    """A client that plays one list of items or faults per attempt."""

    def __init__(self, *attempts: Sequence[StreamItem | ModelFault]) -> None:
        self.attempts = list(attempts)
        self.is_closed = False

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        for item in self.attempts.pop(0):
            if isinstance(item, ModelFault):
                raise item
            yield item

    async def close(self) -> None:
        self.is_closed = True


class Clock:
    """Records waits instead of waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


async def collect(client: RetryingClient) -> list[StreamItem]:
    return [item async for item in client.stream(REQUEST)]


async def test_each_kind_of_fault_counts_its_own_retries() -> None:
    kinds: list[FaultKind] = ["malformed", "reset", "empty", "reset", "first_byte"]
    clock = Clock()
    inner = FaultyClient(*([ModelFault(kind)] for kind in kinds), [REPLY])
    assert await collect(RetryingClient(inner, clock.sleep, lambda: 0.5)) == [REPLY]
    assert clock.waits == [0.3, 0.3, 0.3, 0.6, 0.5]


async def test_waits_grow_exponentially_with_jitter() -> None:
    for jitter, factor in ((0.0, 0.75), (1.0, 1.25)):
        clock = Clock()
        inner = FaultyClient(*[[ModelFault("rate_limit")]] * 4, [REPLY])
        await collect(RetryingClient(inner, clock.sleep, partial(float, jitter)))
        assert clock.waits == [factor * wait for wait in (1.0, 2.0, 4.0, 8.0)]


@pytest.mark.parametrize("kind", [kind for kind, row in FAULTS.items() if row.retries == 0])
async def test_a_permanent_fault_is_not_retried(kind: FaultKind) -> None:
    clock = Clock()
    with pytest.raises(ModelFault):
        await collect(RetryingClient(FaultyClient([ModelFault(kind)]), clock.sleep))
    assert clock.waits == []


async def test_a_wait_is_never_shorter_than_retry_after() -> None:
    clock = Clock()
    inner = FaultyClient(
        [ModelFault("rate_limit", retry_after_s=0.0)], [ModelFault("rate_limit", retry_after_s=60.0)], [REPLY]
    )
    await collect(RetryingClient(inner, clock.sleep, lambda: 0.5))
    assert clock.waits == [1.0, 60.0]


async def test_the_stream_restarts_only_after_fragments() -> None:
    hello, fault = TextDelta(text="hello"), ModelFault("reset")
    clock = Clock()
    items = await collect(RetryingClient(FaultyClient([fault], [hello, fault], [hello, REPLY]), clock.sleep))
    assert items == [hello, StreamRestarted(reason=fault.policy.message), hello, REPLY]


async def test_every_retry_is_reported_with_its_wait() -> None:
    reported: list[tuple[str, float]] = []
    client = RetryingClient(
        FaultyClient([ModelFault("server", "502")], [REPLY]),
        Clock().sleep,
        lambda: 0.5,
        lambda fault, wait: reported.append((fault.detail, wait)),
    )
    await collect(client)
    assert reported == [("502", 0.5)]


async def test_closing_closes_the_inner_client() -> None:
    inner = FaultyClient()
    await RetryingClient(inner).close()
    assert inner.is_closed


@pytest.mark.parametrize(("of_client", "of_request", "retries"), [(0, None, 0), (None, 0, 0), (0, 2, 2), (9, None, 3)])
async def test_retries_are_limited_for_all_requests_or_for_one(
    of_client: int | None, of_request: int | None, retries: int
) -> None:
    clock = Clock()
    client = RetryingClient(FaultyClient(*[[ModelFault("server")]] * 9), clock.sleep, max_retries=of_client)
    with pytest.raises(ModelFault):
        _ = [item async for item in client.stream(replace(REQUEST, max_retries=of_request))]
    assert len(clock.waits) == retries


async def test_a_limit_counts_the_retries_after_all_kinds_of_faults() -> None:
    clock = Clock()
    inner = FaultyClient([ModelFault("server")], [ModelFault("reset")], [REPLY])
    with pytest.raises(ModelFault, match="connection was lost"):
        await collect(RetryingClient(inner, clock.sleep, max_retries=1))
    assert len(clock.waits) == 1
