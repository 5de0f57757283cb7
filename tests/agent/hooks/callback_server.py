"""A receiver of callbacks on loopback that answers, hangs, fails or breaks off as it is told."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, kw_only=True)
class Received:
    """One request that arrived completely."""

    body: Mapping[str, object]
    headers: Mapping[str, str]

    @property
    def event(self) -> object:
        return self.body["event"]

    @property
    def data(self) -> dict[str, object]:
        data = self.body["data"]
        assert isinstance(data, dict)
        return data


@dataclass(kw_only=True)
class Receiver:
    """`answer` gets the number of a request, from 0, and returns a status: 0 breaks off, -1 never answers."""

    answer: Callable[[int], int] = lambda number: 200
    url: str = ""
    taken: list[Received] = field(default_factory=list)
    refused: list[Received] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def events(self) -> list[object]:
        return [request.event for request in self.taken]


@contextmanager
def receiver(answer: Callable[[int], int] = lambda number: 200, port: int = 0) -> Iterator[Receiver]:
    told = Receiver(answer=answer)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            request = Received(body=body, headers=dict(self.headers.items()))
            with lock:
                status = told.answer(len(told.taken) + len(told.refused))
                (told.taken if status == 200 else told.refused).append(request)
            if status == -1:
                told.released.wait(30)
            if status <= 0:
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Write nothing."""

        def finish(self) -> None:
            try:
                super().finish()
            except (OSError, ValueError):
                pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *args: object) -> None:
            """A connection that is broken on purpose is no error."""

    with Server(("127.0.0.1", port), Handler) as http:
        told.url = f"http://127.0.0.1:{http.server_port}/events"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield told
        finally:
            told.released.set()
            http.shutdown()
            thread.join()
