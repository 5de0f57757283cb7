"""Map a provider's error (status, body, headers, error object) to a kind of fault."""

import json
import re
from collections.abc import Mapping
from time import time

from agent.model.faults import FaultKind, ModelFault
from agent.model.json_values import object_at, text_at
from tooling.contract.lazy_pattern import lazy_pattern

MAX_DETAIL_CHARS = 500
MIN_KEY_CHARS = 6

_OVERFLOW = lazy_pattern(
    r"context_length_exceeded|exceed_context_size|maximum context length|prompt is too long|context (window|limit|size)"
    r"|input is too long|too many (input )?tokens|exceeds the available context|request_too_large"
    r"|reduce the length of the messages",
    re.IGNORECASE,
)
_QUOTA = lazy_pattern(
    r"insufficient_quota|insufficient (balance|credits|funds)|credit balance is too low|billing_error"
    r"|payment required|exceeded your current quota, please check your plan and billing",
    re.IGNORECASE,
)
_UNKNOWN_MODEL = lazy_pattern(
    r"model_not_found|model\b.{0,80}(not found|not exist|decommissioned)|not_found_error.{0,40}model:"
    r"|not a valid model|no such model|unknown model|invalid model\b|no endpoints found for",
    re.IGNORECASE,
)
_FILTERED = lazy_pattern(
    r"content_filter|content_policy_violation|content management policy|ResponsibleAIPolicyViolation", re.IGNORECASE
)
_BLIND = lazy_pattern(
    r"(image|vision|multimodal)\b.{0,60}(not support|unsupported|not (available|enabled|allowed))"
    r"|(not support|unsupported|no endpoints found that support).{0,60}(image|vision|multimodal)|mmproj",
    re.IGNORECASE,
)

_BY_STATUS: dict[int, FaultKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "server",
    409: "server",
    413: "overflow",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}
_STATUS_BY_CODE: dict[str, int] = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "billing_error": 402,
    "not_found_error": 404,
    "request_too_large": 413,
    "invalid_request_error": 400,
    "api_error": 500,
    "server_error": 500,
    "timeout_error": 504,
}


def fault_from_status(status: int, body: bytes, headers: Mapping[str, str], *, key: str = "") -> ModelFault:
    """Return the fault for an HTTP error response."""
    text = body.decode("utf-8", "replace")
    kind = _classify(status, text)
    detail = _error_message(text, key)
    if 300 <= status < 400:
        detail = redact(f"redirect to {headers.get('location', 'nowhere')} not followed", key)
    return ModelFault(kind, f"{status} {detail}".strip(), retry_after_s=_retry_after(headers))


def fault_from_error(error: object, *, key: str = "") -> ModelFault:
    """Return the fault for an error object inside a stream; without a status, its text decides."""
    text = json.dumps(error)
    return ModelFault(_classify(_error_status(error), text), _error_message(text, key))


def redact(text: str, key: str) -> str:
    """Remove the API key from a text."""
    # Local servers accept any short word as a key; redacting it would damage ordinary text.
    return text.replace(key, "[key]") if len(key) >= MIN_KEY_CHARS else text


def redact_fault(fault: ModelFault, key: str) -> ModelFault:
    """Remove the API key from the detail of a fault."""
    return ModelFault(fault.kind, redact(fault.detail, key), retry_after_s=fault.retry_after_s)


def _classify(status: int, text: str) -> FaultKind:
    # Providers disagree about statuses (llama.cpp overflows with 500, an empty OpenAI account is 429): text goes first.
    if status in (400, 402, 403, 429) and _QUOTA.search(text):
        return "quota"
    if status in (400, 413, 422, 500) and _OVERFLOW.search(text):
        return "overflow"
    if status in (400, 403, 422) and _FILTERED.search(text):
        return "filtered"
    if status in (400, 404, 415, 422, 500) and _BLIND.search(text):
        return "blind"
    if status in (400, 404, 422) and _UNKNOWN_MODEL.search(text):
        return "unknown_model"
    if status >= 500 and status not in _BY_STATUS:
        return "server"
    return _BY_STATUS.get(status, "refused")


def _error_status(error: object) -> int:
    if not isinstance(error, dict):
        return 500
    for name in ("status", "status_code", "code", "type"):
        code = error.get(name)
        if isinstance(code, str) and code in _STATUS_BY_CODE:
            return _STATUS_BY_CODE[code]
        if isinstance(code, int) or (isinstance(code, str) and re.fullmatch(r"[0-9]{3}", code)):
            return int(code)
    return 500


def _error_message(text: str, key: str) -> str:
    """Extract the message from an error body of any structure, without the key."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = text
    found = _find_message(data) or (text if not isinstance(data, str) else data)
    return redact(" ".join(found.split()), key)[:MAX_DETAIL_CHARS]


def _find_message(data: object) -> str:
    if isinstance(data, str):
        return data
    if not isinstance(data, dict):
        return ""
    # OpenRouter puts the upstream provider's message in `metadata.raw`.
    own = _find_message(data.get("error")) or _find_message(data.get("message")) or text_at(data, "detail")
    raw = text_at(object_at(data, "metadata"), "raw")
    return f"{own}: {raw}" if own and raw else own


def _retry_after(headers: Mapping[str, str]) -> float | None:
    millis = headers.get("retry-after-ms", "")
    if _is_number(millis):
        return float(millis) / 1000
    after = headers.get("retry-after", "").strip()
    if _is_number(after):
        return float(after)
    # The package takes long to import, and nearly all servers send seconds.
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(after).timestamp() - time()) if after else None
    except (ValueError, OverflowError, TypeError):
        # An invalid date, or one that this machine cannot represent.
        return None


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", text.strip()) is not None
