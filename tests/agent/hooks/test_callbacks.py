"""Callbacks: what a receiver gets, and that one that is down or broken neither delays a run nor misses its end."""

import asyncio
import socket
from pathlib import Path

import pytest

from agent.config.user_dirs import callback_spool
from agent.hooks import callback_client
from agent.hooks.callback_client import MAX_QUEUE, MAX_TEXT, CallbackClient
from tests.agent.hooks.callback_server import Receiver, receiver
from tests.agent.orchestrator.lead_runs import AUTO
from tests.agent.orchestrator.run_harness import FinishedRun, RunHarness
from tests.cli.terminal_user import lead_call, lead_reply

CALL_AND_ANSWER = (lead_call("run_command", command="echo hi"), lead_reply("Done."))
TOKEN = "callback-token-1234567"


@pytest.fixture(autouse=True)
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up soon on a receiver that fails; wait as long as it takes for one that answers."""
    monkeypatch.setattr(callback_client, "RETRY_DELAYS_S", (0.01, 0.01, 0.02))
    monkeypatch.setattr(callback_client, "FLUSH_S", 60.0)


def run(home: Path, url: str, *replies: object, token: str = TOKEN, **flags: object) -> FinishedRun:
    options = {**AUTO, "callback_url": url, "callback_token": token, **flags}
    return RunHarness(home=home).run(*(replies or CALL_AND_ANSWER), **options)


def spooled(home: Path) -> list[Path]:
    return sorted(callback_spool(data_of(home)).glob("*.json"))


def data_of(home: Path) -> Path:
    """Return the data folder of the harness."""
    return home.with_name(f"{home.name}-data")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_run_is_reported_from_start_to_end(tmp_path: Path) -> None:
    with receiver() as told:
        finished = run(tmp_path, told.url)
    assert told.events == ["task_started", "tool_call", "agent_response", "task_completed"]
    assert {request.body["session_id"] for request in told.taken} == {finished.events[0]["session_id"]}
    assert all(set(request.body) == {"event", "session_id", "data"} for request in told.taken)
    call = told.taken[1].data
    assert (call["turn"], call["tool_name"], call["tool_input"]) == (1, "run_command", {"command": "echo hi"})
    assert str(call["tool_output"]).strip() == "hi"
    assert told.taken[2].data["response"] == "Done."
    headers = [request.headers for request in told.taken]
    assert {header["Authorization"] for header in headers} == {f"Bearer {TOKEN}"}
    assert len({header["X-Request-ID"] for header in headers}) == 4
    assert {header["X-Trace-ID"] for header in headers} == {finished.events[0]["run_id"]}
    assert len({header["Idempotency-Key"] for header in headers}) == 4
    assert spooled(tmp_path) == []


def test_a_failed_run_ends_with_its_error(tmp_path: Path) -> None:
    with receiver() as told:
        run(tmp_path, told.url, {"match": {"purpose": "lead"}, "fault": "refused"})
    assert told.events == ["task_started", "task_failed"]
    assert told.taken[-1].data["status"] == "failed"
    assert told.taken[-1].data["error_message"]


def test_progress_rises_to_100(tmp_path: Path) -> None:
    def tasks(*statuses: str) -> dict[str, object]:
        items = [
            {"id": str(number), "content": f"t{number}", "status": status} for number, status in enumerate(statuses)
        ]
        return lead_call("manage_tasks", action="update" if "completed" in statuses else "add", tasks=items)

    replies = (tasks("in_progress", "pending"), tasks("completed", "in_progress"), tasks("completed", "completed"))
    with receiver() as told:
        finished = run(tmp_path, told.url, *replies, lead_reply("Done."))
    assert [event["progress"] for event in finished.of_type("todo")] == [0, 50, 100]
    progress = [request.data["progress"] for request in told.taken]
    assert progress == [0, 0, 50, 99, 99, 100]
    patch = told.taken[2].data["state_patch"]
    assert isinstance(patch, dict) and patch["current_step"] == "t1" and len(patch["todos"]) == 2


def test_long_texts_are_cut_with_a_mark_and_secrets_masked(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e" * 4
    big = lead_call("write_file", path="x.txt", content=f"key {secret} " + "x" * 1_000_000)
    with receiver() as told:
        run(tmp_path, told.url, big, lead_reply("Done."))
    arguments = told.taken[1].data["tool_input"]
    assert isinstance(arguments, dict)
    text = str(arguments["content"])
    assert len(text) < MAX_TEXT + 100 and "characters left out]" in text
    assert secret not in str(told.taken)


def test_failures_are_retried_with_the_same_key(tmp_path: Path) -> None:
    with receiver(lambda number: 500 if number < 2 else 200) as told:
        run(tmp_path, told.url)
    assert told.events == ["task_started", "tool_call", "agent_response", "task_completed"]
    keys = [request.headers["Idempotency-Key"] for request in (*told.refused, told.taken[0])]
    assert len(keys) == 3 and len(set(keys)) == 1


@pytest.mark.parametrize("status", [500, 0, -1, 401])
def test_a_receiver_that_takes_nothing_costs_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    with receiver(lambda number: status) as told:
        with monkeypatch.context() as patch:
            # A receiver that never answers is given up when the time of the run's end is over.
            patch.setattr(callback_client, "FLUSH_S", 0.2 if status == -1 else 60.0)
            finished = run(tmp_path, told.url)
        assert finished.outcome.exit_code == 0 and finished.outcome.answer == "Done."
        told.released.set()
        assert len(spooled(tmp_path)) == 1
        warnings = [*finished.warnings, *map(str, finished.events[0]["warnings"])]  # type: ignore[call-overload]
        assert len([warning for warning in warnings if "does not take callbacks" in warning]) == 1
        assert TOKEN not in spooled(tmp_path)[0].read_text()
        told.answer = lambda number: 200
        told.taken.clear()
        second = run(tmp_path, told.url, lead_reply("Again."))
    ends = [request for request in told.taken if request.event == "task_completed"]
    assert {request.body["session_id"] for request in ends} == {
        finished.events[0]["session_id"],
        second.events[0]["session_id"],
    }
    assert spooled(tmp_path) == []


@pytest.mark.parametrize(("status", "reason"), [(500, "HTTP 500"), (307, "HTTP 307, redirects are not followed")])
def test_the_warning_says_why_and_shows_no_token_of_the_url(tmp_path: Path, status: int, reason: str) -> None:
    with receiver(lambda number: status) as told:
        finished = run(tmp_path, f"{told.url}?key=hush")
    warnings = str([*finished.warnings, *map(str, finished.events[0]["warnings"])])  # type: ignore[call-overload]
    assert f"{told.url} does not take callbacks ({reason})" in warnings
    assert "hush" not in warnings


def test_an_end_that_cannot_be_kept_is_a_warning_and_no_more(tmp_path: Path) -> None:
    spool = callback_spool(data_of(tmp_path))
    spool.parent.mkdir(parents=True)
    spool.write_text("a file in its place")
    with receiver() as told:
        finished = run(tmp_path, told.url)
    assert told.events[-1] == "task_completed"
    assert finished.outcome.exit_code == 0
    assert [warning for warning in finished.warnings if "Callback" in warning] == []
    assert "the last callback cannot be kept for later" in str(finished.warnings)


def test_a_receiver_that_is_down_for_the_whole_run_gets_the_end_from_a_later_run(tmp_path: Path) -> None:
    port = free_port()
    finished = run(tmp_path, f"http://127.0.0.1:{port}/events")
    assert finished.outcome.exit_code == 0
    assert len(spooled(tmp_path)) == 1
    with receiver(port=port) as told:
        # The later run has no callbacks of its own.
        run(tmp_path, "", lead_reply("Later."))
        assert told.events == ["task_completed"]
    assert told.taken[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert spooled(tmp_path) == []


def test_a_spooled_event_is_not_sent_with_another_token(tmp_path: Path) -> None:
    port = free_port()
    run(tmp_path, f"http://127.0.0.1:{port}/events")
    with receiver(port=port) as told:
        run(tmp_path, "", lead_reply("Later."), token="another-token-7654321")
        assert told.taken == [] and told.refused == []
    assert len(spooled(tmp_path)) == 1


def test_a_receiver_that_dies_in_the_middle_gets_the_end_later(tmp_path: Path) -> None:
    with receiver(lambda number: 200 if number < 2 else 0) as told:
        run(tmp_path, told.url)
        assert told.events == ["task_started", "tool_call"]
    assert len(spooled(tmp_path)) == 1


def test_damaged_files_in_the_spool_are_removed(tmp_path: Path) -> None:
    callback_spool(data_of(tmp_path)).mkdir(mode=0o700, parents=True)
    (callback_spool(data_of(tmp_path)) / "1.json").write_text("{")
    (callback_spool(data_of(tmp_path)) / "2.json").write_text('{"url": 1}')
    assert run(tmp_path, "", lead_reply("Done.")).outcome.exit_code == 0
    assert spooled(tmp_path) == []


def test_the_queue_is_bounded_and_says_what_was_dropped() -> None:
    async def flood(told: Receiver) -> None:
        client = CallbackClient(told.url, session_id="s")
        for number in range(MAX_QUEUE + 10):
            await client.send_callback("tool_call", {"turn": number})
        await client.send_callback("task_completed", {})
        client.start()
        await client.close()

    with receiver() as told:
        asyncio.run(flood(told))
    assert len(told.taken) == MAX_QUEUE
    assert told.taken[0].data["turn"] == 11
    assert told.taken[-1].event == "task_completed" and told.taken[-1].data["dropped_events"] == 10
