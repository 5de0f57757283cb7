"""The cost of an interrupted run is counted when it is resumed."""

import json

import pytest

from agent.sessions.store import SessionStore
from agent.sessions.views.session_summary import read_log, read_session, refresh_session
from tests.cli.run.resume.test_resume import is_event, run_until
from tests.cli.terminal_user import User, composer_reply, plan, step, step_call, step_reply

pytestmark = pytest.mark.slow


def with_cost(reply: dict[str, object], cost_usd: float) -> dict[str, object]:
    return reply | {"usage": {"input_tokens": 100, "requests": 1, "cost_usd": cost_usd}}


def test_the_cost_of_a_killed_run_includes_the_step_in_flight(user: User) -> None:
    model = user.script(
        with_cost(plan(step("a"), step("b", "a")), 0.5),
        with_cost(step_call("a", "run_command", command="true"), 0.25),
        with_cost(step_reply("a", "a is done"), 0.25),
        with_cost(step_call("b", "run_command", command="sleep 60"), 0.125),
    )
    run_until(user, "run", "do it", "--model", model, "--session", "s", at=is_event("tool.started", "b"))
    (row,) = json.loads(user.agent("runs", "list", "--json").stdout)
    assert (row["status"], row["cost_usd"]) == ("interrupted", 1.125)
    shown = json.loads(user.agent("runs", "show", str(row["run_id"]), "--json").stdout)
    assert (shown["usage"]["cost_usd"], shown["usage"]["requests"]) == (1.125, 4)
    assert [part["cost_usd"] for part in shown["steps"]] == [0.5, 0.125]
    rest = user.script(
        with_cost(step_reply("b", "b is done"), 1.0), with_cost(composer_reply("all done"), 2.0), name="rest.jsonl"
    )
    assert user.agent("resume", "s", "--model", rest).exit_code == 0
    (session,) = json.loads(user.agent("sessions", "list", "--json").stdout)
    assert session["cost_usd"] == 4.125
    # The sum does not depend on how far the log had been read before.
    folder = SessionStore(user.data).folder_for("s")
    lines, expected = folder.events.read_bytes().splitlines(keepends=True), read_log(folder)
    for count in range(1, len(lines)):
        folder.events.write_bytes(b"".join(lines[:count]))
        folder.summary.unlink()
        refresh_session(folder)
        folder.events.write_bytes(b"".join(lines))
        assert read_session(folder) == expected, count
