"""The address for telemetry, and the trace ids of a run, derived from its id."""

import hashlib
from collections.abc import Mapping

from agent.config.settings import Settings

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_DISABLED = "OTEL_SDK_DISABLED"


def telemetry_endpoint(settings: Settings, environ: Mapping[str, str]) -> str:
    """Return the address of the OTLP receiver; empty if nothing is exported."""
    if environ.get(_DISABLED, "").strip().lower() == "true":
        return ""
    return (settings.otel_endpoint or environ.get(_ENDPOINT, "")).strip().rstrip("/")


def trace_id(run_id: str) -> str:
    """Return the trace id of a run, as 32 hexadecimal digits."""
    return hashlib.sha256(f"windlass trace {run_id}".encode()).hexdigest()[:32]


def root_span_id(run_id: str) -> str:
    """Return the span id of the whole run, as 16 hexadecimal digits."""
    return hashlib.sha256(f"windlass span {run_id}".encode()).hexdigest()[:16]


def traceparent(run_id: str, given: str = "") -> str:
    """Return the TRACEPARENT for child processes (W3C Trace Context); `given` is an existing trace."""
    return f"00-{given or trace_id(run_id)}-{root_span_id(run_id)}-01"
