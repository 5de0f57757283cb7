"""The event stream: everything once and in order, live and after a reconnection."""

import threading

import httpx
import pytest

from agent.protocol.events import MessageAdded, RunCompleted, WarningRaised
from tests.agent.api.page_scene import write_beginning, write_end
from tests.agent.api.served import Server, WrittenRun, data_lines

LIMIT_S = 60


def url(run: WrittenRun) -> str:
    return f"/api/v1/runs/{run.run_id}/events"


def test_a_finished_run_is_streamed_from_its_log_and_ends(server: Server) -> None:
    run = WrittenRun(server.store, "s1")
    write_beginning(run, "t1")
    write_end(run)
    with server.client() as client:
        reply = client.get(url(run), timeout=LIMIT_S)
    *events, end = data_lines(reply.text)
    logged = run.folder.events.read_text().splitlines()
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert [event["seq"] for event in events] == list(range(1, len(logged) + 1))
    assert (events[0]["type"], events[-1]["type"], end) == ("init", "result", {"reason": "ended"})
    assert f"id: {len(logged)}\n" in reply.text


@pytest.mark.parametrize("way", ["header", "query"])
def test_a_client_that_comes_back_gets_what_it_missed_and_nothing_twice(server: Server, way: str) -> None:
    run = WrittenRun(server.store, "s1")
    write_beginning(run, "t1")
    write_end(run)
    with server.client() as client:
        given = {"headers": {"Last-Event-ID": "5"}} if way == "header" else {"params": {"after": "5"}}
        reply = client.get(url(run), timeout=LIMIT_S, **given)  # type: ignore[arg-type]
    *events, _ = data_lines(reply.text)
    assert (events[0]["seq"], events[-1]["type"]) == (6, "result")


def test_events_arrive_while_the_run_works(server: Server) -> None:
    run = WrittenRun(server.store, "s1")
    write_beginning(run, "t1")
    seen: list[dict[str, object]] = []
    with run.running(), server.client() as client, client.stream("GET", url(run), timeout=LIMIT_S) as reply:
        for line in reply.iter_lines():
            if not line.startswith("data: "):
                continue
            seen += data_lines(line)
            if seen[-1]["type"] == "tool.started" and len(seen) < 20:
                run.write(WarningRaised(message="the disk is almost full"))
            if seen[-1]["type"] == "warning":
                write_end(run)
            if seen[-1].get("type") == "result":
                break
    assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))


def test_a_line_that_is_half_written_is_sent_when_it_is_complete(server: Server) -> None:
    run = WrittenRun(server.store, "s1")
    write_beginning(run, "t1")
    before = run.folder.events.read_bytes()
    write_end(run)
    rest = run.folder.events.read_bytes()[len(before) :]
    run.folder.events.write_bytes(before + rest[:40])
    with run.running(), server.client() as client, client.stream("GET", url(run), timeout=LIMIT_S) as reply:
        events: list[dict[str, object]] = []
        for line in reply.iter_lines():
            events += data_lines(line)
            if len(events) == before.count(b"\n") and rest:
                with run.folder.events.open("ab") as log:
                    log.write(rest[40:])
                rest = b""
    assert [event.get("type") for event in events][-2:] == ["result", None]
    assert [event["seq"] for event in events[:-1]] == list(range(1, len(events)))


def test_a_run_whose_process_was_killed_ends_as_interrupted(server: Server) -> None:
    run = WrittenRun(server.store, "s1")
    write_beginning(run, "t1")
    with server.client() as client:
        *_, end = data_lines(client.get(url(run), timeout=LIMIT_S).text)
    assert end == {"reason": "interrupted"}


def test_only_the_events_of_the_run_are_sent(server: Server) -> None:
    earlier, run = WrittenRun(server.store, "s1", "run-1"), WrittenRun(server.store, "s1", "run-2")
    write_beginning(earlier, "t1")
    write_beginning(run, "t1")
    with server.client() as client:
        first = data_lines(client.get(url(earlier), timeout=LIMIT_S).text)
        second = data_lines(client.get(url(run), timeout=LIMIT_S).text)
    assert {event.get("run_id") for event in first} == {"run-1", None}
    assert {event.get("run_id") for event in second} == {"run-2", None}


def test_text_with_line_breaks_of_every_kind_stays_one_event(server: Server) -> None:
    run = WrittenRun(server.store, "s1")
    text = "a\rb\nc\r\nd\u2028e\x0bf\x85g\ndata: {}\n\nid: 99"
    run.write(MessageAdded(role="user", content=text))
    run.write(RunCompleted(subtype="success", is_error=False, exit_code=0, result="ok"))
    with server.client() as client:
        reply = client.get(url(run), timeout=LIMIT_S)
    frames = [frame for frame in reply.content.decode().split("\n\n") if frame.startswith("id: ")]
    assert [frame.split("\n")[0] for frame in frames] == ["id: 1", "id: 2"]


def test_streams_that_are_closed_leave_nothing_behind(server: Server) -> None:
    run = WrittenRun(server.store, "s1")
    write_beginning(run, "t1")
    opened = threading.Barrier(9, timeout=LIMIT_S)

    def watch() -> None:
        with server.client() as client, client.stream("GET", url(run), timeout=LIMIT_S) as reply:
            next(reply.iter_lines())
            opened.wait()

    with run.running():
        threads = [threading.Thread(target=watch) for _ in range(8)]
        for thread in threads:
            thread.start()
        opened.wait()
        for thread in threads:
            thread.join(LIMIT_S)
        assert _streams_are_gone(server)


def _streams_are_gone(server: Server) -> bool:
    with server.client() as client:
        for _ in range(1000):
            if "windlass_event_streams 0\n" in client.get("/metrics").text:
                return True
    return False


def test_a_run_that_does_not_exist_is_not_found(server: Server) -> None:
    with server.client() as client:
        assert client.get("/api/v1/runs/nothing/events").status_code == 404
        assert isinstance(client.get("/api/v1/runs/%2e%2e/events"), httpx.Response)
