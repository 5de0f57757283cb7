"""Every kind of fault, raised by a real client against a real server."""

from dataclasses import replace

import pytest

from agent.model.faults import FAULTS, FaultKind
from agent.model.port import StreamRestarted
from tests.provider.client_harness import KEY, MODELS, REQUEST, HttpxOnly, ask
from tests.provider.replies import HttpResponse, Text
from tests.provider.server import Provider

TIMEOUTS = {
    "silence": {"first_byte_timeout_s": 0.3},
    "head_then_silence": {"first_byte_timeout_s": 0.3},
    "stops_between_chunks": {"chunk_timeout_s": 0.3},
}

KINDS: tuple[tuple[str, FaultKind], ...] = (
    ("silence", "first_byte"),
    ("head_then_silence", "first_byte"),
    ("stops_between_chunks", "between_chunks"),
    ("rate_limit", "rate_limit"),
    ("500", "server"),
    ("502", "server"),
    ("504", "server"),
    ("503", "overloaded"),
    ("overloaded", "overloaded"),
    ("error_in_stream", "overloaded"),
    ("reset", "reset"),
    ("reset_at_once", "disconnect"),
    ("ends_early", "reset"),
    ("malformed", "malformed"),
    ("web_page", "malformed"),
    ("empty", "empty"),
    ("overflow", "overflow"),
    ("auth", "auth"),
    ("forbidden", "auth"),
    ("quota", "quota"),
    ("no_credit", "quota"),
    ("unknown_model", "unknown_model"),
    ("bad_request", "refused"),
    ("filtered", "filtered"),
    ("refusal", "filtered"),
    ("redirect", "refused"),
)


@pytest.mark.parametrize(("model", "is_httpx"), [(MODELS[0], False), (MODELS[1], False), (MODELS[0], True)])
@pytest.mark.parametrize(("name", "kind"), KINDS)
async def test_a_permanent_fault_is_retried_by_its_policy_and_then_raised(
    name: str, kind: FaultKind, model: str, is_httpx: bool
) -> None:
    policy = FAULTS[kind]
    async with Provider() as provider:
        provider.fault(name, times=policy.retries + 3)
        transports = HttpxOnly() if is_httpx else None
        request = replace(REQUEST, model=model)
        result = await ask(provider, request, transports=transports, **TIMEOUTS.get(name, {}))
    assert result.fault is not None
    assert (result.fault.kind, result.fault.policy.exit_code) == (kind, policy.exit_code)
    assert len(provider.requests) == policy.retries + 1
    assert result.waits == [policy.backoff_s * 2**attempt for attempt in range(policy.retries)]
    assert KEY not in str(result.fault)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", [name for name, kind in KINDS if FAULTS[kind].retries])
async def test_a_transient_fault_is_retried_once(name: str, model: str) -> None:
    async with Provider() as provider:
        provider.fault(name)
        provider.reply(Text("all is well"))
        result = await ask(provider, replace(REQUEST, model=model), **TIMEOUTS.get(name, {}))
    assert result.reply.message.content == "all is well"
    assert len(provider.requests) == 2
    assert result.text == "all is well"


async def test_the_stream_restarts_after_a_broken_reply() -> None:
    async with Provider() as provider:
        provider.fault("reset")
        provider.reply(Text("second"))
        result = await ask(provider)
    restart = next(at for at, item in enumerate(result.items) if isinstance(item, StreamRestarted))
    assert restart > 0
    assert result.items[restart] == StreamRestarted(reason=FAULTS["reset"].message)


async def test_a_refused_connection_is_a_connect_fault() -> None:
    async with Provider() as provider:
        await provider.stop_listening()
        result = await ask(provider)
    assert result.fault is not None
    assert (result.fault.kind, result.fault.policy.exit_code) == ("connect", 75)
    assert len(result.waits) == FAULTS["connect"].retries
    assert f"127.0.0.1:{provider.port}" in str(result.fault)


async def test_an_invalid_url_is_a_connect_fault() -> None:
    async with Provider() as provider:
        provider.port = 99999999
        result = await ask(provider)
    assert result.fault is not None
    assert result.fault.kind == "connect"


async def test_retry_after_is_honored() -> None:
    async with Provider() as provider:
        provider.fault("rate_limit", retry_after="7")
        provider.reply(Text("at last"))
        result = await ask(provider)
    assert (result.reply.message.content, result.waits) == ("at last", [7.0])


async def test_a_retry_after_of_more_than_a_minute_is_not_waited_for() -> None:
    async with Provider() as provider:
        provider.fault("rate_limit", retry_after="3600")
        result = await ask(provider)
    assert result.fault is not None
    assert (result.fault.kind, result.fault.retry_after_s) == ("rate_limit", 3600.0)
    assert (len(provider.requests), result.waits) == (1, [])


@pytest.mark.parametrize("model", MODELS)
async def test_a_key_in_the_providers_message_is_redacted(model: str) -> None:
    async with Provider() as provider:
        provider.fault("auth")
        result = await ask(provider, replace(REQUEST, model=model))
    assert "[key]" in str(result.fault)
    assert KEY not in repr(result.fault)
    assert KEY in str(provider.requests[0].headers)


async def test_a_redirect_is_not_followed_with_the_key() -> None:
    async with Provider() as elsewhere, Provider() as provider:
        provider.reply(HttpResponse(status=307, headers={"Location": f"{elsewhere.base_url}/chat/completions"}))
        result = await ask(provider)
    assert result.fault is not None
    assert result.fault.kind == "refused"
    assert elsewhere.requests == []


async def test_a_huge_error_body_is_truncated() -> None:
    async with Provider() as provider:
        provider.reply(HttpResponse(status=400, content_type="text/plain", parts=(b"no " * 100_000,)))
        result = await ask(provider)
    assert result.fault is not None
    assert result.fault.detail.startswith("400 no no")
    assert len(result.fault.detail) < 600


@pytest.mark.parametrize("model", MODELS)
async def test_arguments_truncated_by_the_length_limit_have_a_problem(model: str) -> None:
    async with Provider() as provider:
        provider.fault("truncated_arguments")
        result = await ask(provider, replace(REQUEST, model=model))
    (call,) = result.reply.message.tool_calls
    assert (call.name, call.arguments) == ("write_file", {})
    assert "cut off" in str(call.problem)
    assert result.reply.finish_reason == "length"


@pytest.mark.parametrize("model", MODELS)
async def test_arguments_that_cannot_be_parsed_have_a_problem(model: str) -> None:
    async with Provider() as provider:
        provider.fault("invalid_arguments")
        result = await ask(provider, replace(REQUEST, model=model))
    (call,) = result.reply.message.tool_calls
    assert call.name == "write_file"
    assert call.problem
