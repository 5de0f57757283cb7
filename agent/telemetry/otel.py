"""Exports a run as OpenTelemetry traces, metrics and logs, with the GenAI semantic conventions.

The SDK's queues are bounded and its threads send the data: the run never waits for the receiver.
"""

import asyncio
import json
import logging
import random
import threading
from collections.abc import Mapping
from datetime import datetime

from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context

from agent.protocol.envelope import Envelope
from agent.protocol.events import (
    MessageAdded,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.telemetry.log_file import LogLevel
from agent.telemetry.trace_ids import root_span_id, trace_id
from agent.version import VERSION
from agent.vocabulary.status import is_success
from agent.vocabulary.usage import Usage

# Time that the end of a run waits for the receiver.
FLUSH_S = 2.0
_EXPORT_TIMEOUT_S = 5.0
_MAX_QUEUE = 2048
_SEVERITIES: Mapping[LogLevel, SeverityNumber] = {
    "debug": SeverityNumber.DEBUG,
    "info": SeverityNumber.INFO,
    "warning": SeverityNumber.WARN,
    "error": SeverityNumber.ERROR,
}


class RunIds(IdGenerator):
    """Derives the ids of the trace and its first span from the run id; all others are random."""

    def __init__(self, run_id: str, given: str = "") -> None:
        self._trace = int(given or trace_id(run_id), 16)
        self._first: int | None = int(root_span_id(run_id), 16)

    def generate_trace_id(self) -> int:
        """Return the id of the trace."""
        return self._trace

    def generate_span_id(self) -> int:
        """Return the id of the next span."""
        first, self._first = self._first, None
        return first if first is not None else random.getrandbits(64) or 1


class RunTelemetry:
    """Turns the events of one run into spans, metrics and log records."""

    def __init__(self, *, endpoint: str, run_id: str, session_id: str, with_content: bool, trace_id: str = "") -> None:
        # Errors of the SDK about an unreachable receiver must not reach the user's terminal.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        resource = Resource.create({"service.name": "windlass", "service.version": VERSION})
        self._session_id = session_id
        self._run_id = run_id
        self._with_content = with_content
        self._traces = TracerProvider(resource=resource, id_generator=RunIds(run_id, trace_id), shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", timeout=_EXPORT_TIMEOUT_S)
        self._traces.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=_MAX_QUEUE))
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(endpoint=f"{endpoint}/v1/metrics", timeout=_EXPORT_TIMEOUT_S)
        )
        self._metrics = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._logs = LoggerProvider(resource=resource, shutdown_on_exit=False)
        log_exporter = OTLPLogExporter(endpoint=f"{endpoint}/v1/logs", timeout=_EXPORT_TIMEOUT_S)
        self._logs.add_log_record_processor(BatchLogRecordProcessor(log_exporter, max_queue_size=_MAX_QUEUE))
        self._tracer = self._traces.get_tracer("windlass", VERSION)
        self._logger = self._logs.get_logger("windlass", VERSION)
        meter = self._metrics.get_meter("windlass", VERSION)
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}")
        self._durations = meter.create_histogram("gen_ai.client.operation.duration", "s")
        self._calls = meter.create_counter("windlass.tool.calls", "{call}")
        self._model = ""
        self._run: Span | None = None
        self._steps: dict[str, Span] = {}
        self._open_calls: dict[str, Span] = {}
        # Time at which the model could start its next reply, by step.
        self._ready: dict[str, int] = {}

    def on_event(self, envelope: Envelope) -> None:
        """Process one event."""
        at, step_id = _nanoseconds(envelope.ts), envelope.step_id or ""
        match envelope.event:
            case RunStarted(model=model):
                self._start_run(model, at)
            case StepStarted():
                self._steps[step_id] = self._start(f"step {step_id}", at, {"windlass.step.id": step_id})
                self._ready[step_id] = at
            case MessageAdded(role="assistant", delta=False, spent=Usage() as usage, content=content):
                self._add_chat(step_id, at, usage, content)
            case ToolStarted() as call:
                self._start_call(step_id, at, call)
            case ToolCompleted() as call:
                self._end_call(step_id, at, call)
            case StepCompleted(status=status):
                if span := self._steps.pop(step_id, None):
                    span.set_attribute("windlass.step.status", status)
                    _end(span, at, "" if is_success(status) else status)
            case RunCompleted() as ended:
                self._end_run(ended, at)
            case _:
                pass

    def log(self, envelope: Envelope, level: LogLevel, line: Mapping[str, object]) -> None:
        """Export the log line of an event."""
        span = self._steps.get(envelope.step_id or "") or self._run
        attributes = {name: value for name, value in line.items() if isinstance(value, (str, int, float))}
        self._logger.emit(
            timestamp=_nanoseconds(envelope.ts),
            context=set_span_in_context(span) if span else None,
            severity_number=_SEVERITIES[level],
            severity_text=level.upper(),
            body=str(line.get("message", "")),
            attributes=attributes,
            event_name=envelope.event.type,
        )

    async def close(self) -> None:
        """Flush the queues, for a limited time."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            for provider in (self._traces, self._metrics, self._logs):
                provider.shutdown()
            try:
                loop.call_soon_threadsafe(done.set)
            except RuntimeError:
                # The program exited without waiting any longer.
                return

        # A daemon thread: a receiver that hangs must not keep the program from exiting.
        threading.Thread(target=shut_down, daemon=True, name="telemetry").start()
        try:
            await asyncio.wait_for(done.wait(), FLUSH_S)
        except TimeoutError:
            return

    def _start(
        self, name: str, at: int, about: Mapping[str, str], *, step_id: str = "", is_client: bool = False
    ) -> Span:
        parent = self._steps.get(step_id) or self._run
        return self._tracer.start_span(
            name,
            context=set_span_in_context(parent) if parent else None,
            kind=SpanKind.CLIENT if is_client else SpanKind.INTERNAL,
            attributes=dict(about),
            start_time=at,
        )

    def _start_run(self, model: str, at: int) -> None:
        self._model = model
        about = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "windlass",
            "gen_ai.conversation.id": self._session_id,
            "windlass.run.id": self._run_id,
            **_model_attributes(model),
        }
        self._run = self._start("invoke_agent windlass", at, about)

    def _end_run(self, ended: RunCompleted, at: int) -> None:
        for span in (*self._open_calls.values(), *self._steps.values()):
            _end(span, at, "cancelled")
        self._steps.clear()
        self._open_calls.clear()
        if self._run:
            self._run.set_attributes({"windlass.run.exit_code": ended.exit_code, **_usage_attributes(ended.usage)})
            if ended.total_cost_usd is not None:
                self._run.set_attribute("windlass.run.cost_usd", ended.total_cost_usd)
            _end(self._run, at, ended.subtype if ended.is_error else "")
            about = {"gen_ai.operation.name": "invoke_agent", **_model_attributes(self._model)}
            self._durations.record(ended.duration_ms / 1000, about)

    def _add_chat(self, step_id: str, at: int, usage: Usage, content: str) -> None:
        """Add the request that a message replies to; it started when the last results were available."""
        about = {"gen_ai.operation.name": "chat", **_model_attributes(self._model)}
        began = self._ready.get(step_id, at)
        span = self._start(f"chat {self._model}", began, about, step_id=step_id, is_client=True)
        span.set_attributes(_usage_attributes(usage))
        if self._with_content:
            message = [{"role": "assistant", "parts": [{"type": "text", "content": content}]}]
            span.set_attribute("gen_ai.output.messages", json.dumps(message, ensure_ascii=False))
        _end(span, at, "")
        self._ready[step_id] = at
        self._durations.record(max(0, at - began) / 1e9, about)
        for kind, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self._tokens.record(count, {**about, "gen_ai.token.type": kind})

    def _start_call(self, step_id: str, at: int, call: ToolStarted) -> None:
        about = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.tool_id,
        }
        if self._with_content:
            about["gen_ai.tool.call.arguments"] = json.dumps(dict(call.input), ensure_ascii=False, default=str)
        self._open_calls[call.tool_id] = self._start(f"execute_tool {call.name}", at, about, step_id=step_id)

    def _end_call(self, step_id: str, at: int, call: ToolCompleted) -> None:
        self._ready[step_id] = at
        self._calls.add(1, {"gen_ai.tool.name": call.name, "windlass.tool.status": call.status})
        if span := self._open_calls.pop(call.tool_id, None):
            span.set_attributes({"windlass.tool.status": call.status, "windlass.tool.exit_code": call.exit_code})
            if self._with_content:
                span.set_attribute("gen_ai.tool.call.result", call.output)
            _end(span, at, "" if call.status == "ok" else call.status)


def _end(span: Span, at: int, error: str) -> None:
    if error:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR))
    span.end(at)


def _model_attributes(model: str) -> dict[str, str]:
    # "provider/name" or "script:FILE".
    name = model.partition("/")[0].partition(":")[0]
    return {"gen_ai.request.model": model, "gen_ai.provider.name": name, "gen_ai.system": name} if model else {}


def _usage_attributes(usage: Usage) -> dict[str, int]:
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
    }


def _nanoseconds(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * 1000) * 1_000_000
