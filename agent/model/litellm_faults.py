"""Map litellm's exceptions to faults by class name and status, without importing litellm."""

import re
from collections.abc import Mapping

from agent.model.fault_mapping import MAX_DETAIL_CHARS, fault_from_status, redact
from agent.model.faults import FaultKind, ModelFault
from tooling.contract.lazy_pattern import lazy_pattern

_BY_NAME: dict[str, FaultKind] = {
    "ContextWindowExceededError": "overflow",
    "ContentPolicyViolationError": "filtered",
    "RejectedRequestError": "refused",
    "UnsupportedParamsError": "refused",
    "PaymentRequiredError": "quota",
    "BudgetExceededError": "quota",
    "LiteLLMUnknownProvider": "unknown_model",
    "NotFoundError": "unknown_model",
    "Timeout": "first_byte",
    "APITimeoutError": "first_byte",
    "MidStreamFallbackError": "reset",
    "APIConnectionError": "connect",
    "APIResponseValidationError": "malformed",
}
_MIN_ERROR_STATUS = 400
_NO_PROVIDER = lazy_pattern(r"LLM Provider NOT provided", re.IGNORECASE)
_NO_KEY = lazy_pattern(
    r"missing.{0,40}(api[ _]key|credential)|api[ _]key.{0,40}(missing|not set|not found|must be set)", re.IGNORECASE
)
_NOT_INSTALLED = lazy_pattern(r"No module named|pip install", re.IGNORECASE)
_NO_CONNECTION = lazy_pattern(r"cannot connect to host|connection refused|name or service not known", re.IGNORECASE)
_PREFIX = lazy_pattern(r"^(?:(?:litellm\.)?\w*(?:Error|Timeout|Exception): )+")
# What aiohttp and litellm add to the host and the reason.
_NOISE = lazy_pattern(r"\b\w+Exception - | ssl:(?:<[^>]*>|\w+)")
_TRACEBACK = lazy_pattern(r"Traceback \(most recent call last\).*", re.DOTALL)


def fault_from_exception(error: Exception, *, key: str = "", provider: str = "") -> ModelFault:
    """Return the fault for an exception raised by litellm."""
    message = _NOISE.sub("", _PREFIX.sub("", _TRACEBACK.sub("", str(error))))
    detail = redact(" ".join(message.split()), key)[:MAX_DETAIL_CHARS] or type(error).__name__
    if _NO_PROVIDER.search(detail):
        return ModelFault("unknown_model", f"unknown provider {provider!r}; write the model as provider/name")
    kind = _classify(error, detail)
    if kind is not None:
        return ModelFault(kind, detail)
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= _MIN_ERROR_STATUS:
        return fault_from_status(status, detail.encode(), _headers(error), key=key)
    return ModelFault("malformed", f"{type(error).__name__}: {detail}")


def _classify(error: Exception, detail: str) -> FaultKind | None:
    if _NOT_INSTALLED.search(detail):
        return "unknown_model"
    if _NO_KEY.search(detail):
        return "missing"
    if _NO_CONNECTION.search(detail):
        return "connect"
    names = (cls.__name__ for cls in type(error).__mro__)
    return next((_BY_NAME[name] for name in names if name in _BY_NAME), None)


def _headers(error: Exception) -> Mapping[str, str]:
    headers: object = getattr(getattr(error, "response", None), "headers", None)
    return headers if isinstance(headers, Mapping) else {}
