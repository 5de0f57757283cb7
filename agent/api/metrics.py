"""Metrics of the server and the queue in the text format of Prometheus."""

import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agent.api.event_stream import LogWatch
from agent.service.task import QueueStats
from agent.version import VERSION

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counts requests; all other metrics are read on request."""

    def __init__(self, watch: LogWatch) -> None:
        self._watch = watch
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: Counter[float] = Counter()
        self._seconds = 0.0
        self._started = time.time()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one finished request; `route` is the path pattern, which keeps the number of labels small."""
        self._requests[method, route, status] += 1
        self._seconds += seconds
        self._buckets.update(bound for bound in _BUCKETS_S if seconds <= bound)

    def render(self, stats: QueueStats | None) -> str:
        """Return all metrics; without `stats`, if the queue is unreachable, those of the queue are omitted."""
        return "\n".join([*self._server_lines(), *_queue_lines(stats), ""])

    def _server_lines(self) -> Iterator[str]:
        requests = (
            ({"method": method, "route": route, "status": str(status)}, count)
            for (method, route, status), count in sorted(self._requests.items())
        )
        yield from _metric("windlass_http_requests_total", "counter", "Requests by route and status.", requests)
        total = sum(self._requests.values())
        name = "windlass_http_request_seconds"
        yield from (f"# HELP {name} Time until a reply was complete.", f"# TYPE {name} histogram")
        yield from (f'{name}_bucket{{le="{bound:g}"}} {self._buckets[bound]}' for bound in _BUCKETS_S)
        yield from (f'{name}_bucket{{le="+Inf"}} {total}', f"{name}_sum {self._seconds:.6f}", f"{name}_count {total}")
        yield from _gauge("windlass_event_streams", "Open streams of events.", self._watch.stream_count)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        cpu: list[tuple[Mapping[str, str], float]] = [({}, usage.ru_utime + usage.ru_stime)]
        yield from _metric("process_cpu_seconds_total", "counter", "CPU time of the server.", cpu)
        yield from _gauge("process_resident_memory_bytes", "Memory of the server.", resident_bytes())
        yield from _gauge("process_start_time_seconds", "Start of the server.", self._started)
        yield from _metric("windlass_info", "gauge", "Version of the server.", [({"version": VERSION}, 1)])


def resident_bytes() -> int:
    """Return the resident memory of this process; on systems without /proc, its peak."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return pages * resource.getpagesize()


def _queue_lines(stats: QueueStats | None) -> Iterator[str]:
    yield from _metric(
        "windlass_queue_up", "gauge", "Whether the queue can be reached.", [({}, int(stats is not None))]
    )
    if stats is None:
        return
    states = [({"state": str(state)}, count) for state, count in sorted(stats.tasks.items())]
    yield from _metric("windlass_tasks", "gauge", "Tasks by state.", states)
    yield from _gauge("windlass_open_questions", "Questions and approvals that wait.", stats.open_questions)
    yield from _gauge("windlass_schedules", "Schedules.", stats.schedules)
    yield from _gauge("windlass_workers", "Workers alive.", sum(worker.is_alive for worker in stats.workers))


def _gauge(name: str, help: str, value: float) -> Iterator[str]:
    return _metric(name, "gauge", help, [({}, value)])


def _metric(name: str, kind: str, help: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        inner = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
        yield f"{name}{{{inner}}} {value:.15g}" if inner else f"{name} {value:.15g}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
