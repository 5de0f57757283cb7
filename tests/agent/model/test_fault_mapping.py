"""Statuses and messages of real providers are mapped to kinds of faults."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from agent.model.fault_mapping import fault_from_error, fault_from_status
from agent.model.faults import FaultKind

BODIES: tuple[tuple[int, object, FaultKind], ...] = (
    (400, {"error": {"code": "context_length_exceeded", "message": "Your input exceeds the limit."}}, "overflow"),
    (
        400,
        {"error": {"message": "prompt is too long: 1 tokens > 0 maximum", "type": "invalid_request_error"}},
        "overflow",
    ),
    (400, {"error": {"message": "input length and `max_tokens` exceed context limit: 1 + 2 > 2"}}, "overflow"),
    (500, {"error": {"message": "Context size has been exceeded.", "type": "server_error"}}, "overflow"),
    (400, {"error": {"message": "request (9 tokens) exceeds the available context size (8 tokens)"}}, "overflow"),
    (413, {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}, "overflow"),
    (404, {"error": 'model "llama3.9" not found, try pulling it first'}, "unknown_model"),
    (400, {"error": {"message": "openai/gpt-nope is not a valid model ID", "code": 400}}, "unknown_model"),
    (400, {"error": {"message": "The model `mixtral-8x7b-32768` has been decommissioned"}}, "unknown_model"),
    (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: claude-4.9"}}, "unknown_model"),
    (404, {"detail": "Not Found"}, "refused"),
    (400, {"error": {"message": "registry.ollama.ai/library/tiny does not support tools"}}, "refused"),
    (400, {"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model."}}, "refused"),
    (400, {"error": {"message": "Your credit balance is too low to access the Anthropic API."}}, "quota"),
    (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}, "quota"),
    (429, {"error": {"message": "Rate limit reached"}}, "rate_limit"),
    (502, "<html><body>Bad gateway</body></html>", "server"),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded"),
)


@pytest.mark.parametrize(("status", "body", "kind"), BODIES)
def test_an_error_response_is_mapped_to_its_kind(status: int, body: object, kind: FaultKind) -> None:
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    assert fault_from_status(status, raw, {}).kind == kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
        ({"type": "rate_limit_error", "message": "slow down"}, "rate_limit"),
        ({"code": 429, "message": "Provider returned error"}, "rate_limit"),
        ({"code": "503", "message": "no instance"}, "overloaded"),
        ({"type": "exceed_context_size_error", "code": 400, "message": "too long"}, "overflow"),
        ({"message": "something broke"}, "server"),
        ("something broke", "server"),
    ],
)
def test_an_error_inside_a_stream_is_mapped_to_its_kind(error: object, kind: FaultKind) -> None:
    assert fault_from_error(error).kind == kind


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "the message"}}, "the message"),
        ({"error": "the message"}, "the message"),
        ({"object": "error", "message": "the message"}, "the message"),
        ({"detail": "the message"}, "the message"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "the message"}}}, "the message"),
        ({"strange": ["shape"]}, '{"strange": ["shape"]}'),
    ],
)
def test_the_providers_message_is_preserved(body: object, message: str) -> None:
    assert message in fault_from_status(400, json.dumps(body).encode(), {}).detail


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_parsed_in_all_formats(headers: dict[str, str], seconds: float | None) -> None:
    assert fault_from_status(429, b"", headers).retry_after_s == seconds


def test_retry_after_may_be_a_date() -> None:
    moment = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    wait = fault_from_status(429, b"", {"retry-after": moment}).retry_after_s
    assert wait is not None
    assert 25 < wait <= 30


def test_a_key_where_a_long_body_is_truncated_is_redacted() -> None:
    key = "sk-0123456789abcdef"
    fault = fault_from_status(401, b"x" * 490 + key.encode(), {}, key=key)
    assert "sk-0" not in fault.detail
