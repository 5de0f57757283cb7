"""A receiver of OTLP over HTTP on loopback, which decodes what it gets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from gzip import decompress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(kw_only=True)
class Receiver:
    """What has arrived."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)
    logs: list[LogRecord] = field(default_factory=list)

    def take(self, path: str, body: bytes) -> None:
        self.bodies.append(body)
        if path == "/v1/traces":
            traces = ExportTraceServiceRequest.FromString(body).resource_spans
            self.spans += [span for of in traces for scope in of.scope_spans for span in scope.spans]
        elif path == "/v1/metrics":
            metrics = ExportMetricsServiceRequest.FromString(body).resource_metrics
            self.metrics += [metric for of in metrics for scope in of.scope_metrics for metric in scope.metrics]
        elif path == "/v1/logs":
            logs = ExportLogsServiceRequest.FromString(body).resource_logs
            self.logs += [record for of in logs for scope in of.scope_logs for record in scope.log_records]

    def span(self, name: str) -> Span:
        (found,) = [span for span in self.spans if span.name == name]
        return found


def attributes(span: Span) -> dict[str, object]:
    values = {pair.key: pair.value for pair in span.attributes}
    return {key: getattr(value, value.WhichOneof("value")) for key, value in values.items()}


@contextmanager
def open_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = decompress(body)
            receiver.take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
