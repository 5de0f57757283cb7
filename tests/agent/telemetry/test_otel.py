"""Traces, metrics and logs of real runs, received over OTLP."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from agent.telemetry.trace_ids import root_span_id, trace_id, traceparent
from tests.agent.telemetry.otlp_receiver import Receiver, attributes, open_receiver
from tests.cli.terminal_user import ProgramResult, User, hand_out, lead_call, lead_reply, step, step_reply

pytestmark = pytest.mark.slow
AUTO = {"AGENT_PLANNING": "auto"}
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"


@pytest.fixture
def user(tmp_path: object) -> User:
    return User(home=tmp_path)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with open_receiver() as opened:
        yield opened


def run(user: User, endpoint: str, *replies: object, **environ: str) -> ProgramResult:
    model = user.script(*replies)
    words = ("run", "--model", model, "-C", str(user.home), "--output-format", "stream-json", "the request")
    return user.agent(*words, **{**AUTO, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, **environ})


def test_a_run_is_one_trace_with_its_steps_requests_and_calls(user: User, receiver: Receiver) -> None:
    usage = {"input_tokens": 100, "output_tokens": 7}
    result = run(
        user,
        receiver.url,
        {**lead_call("list_directory", path="."), "usage": usage},
        hand_out(step("one")),
        step_reply("one", "1"),
        lead_reply("Done."),
    )
    run_id = str(result.events[0]["run_id"])
    root = receiver.span("invoke_agent windlass")
    assert (root.trace_id.hex(), root.span_id.hex()) == (trace_id(run_id), root_span_id(run_id))
    assert {span.trace_id for span in receiver.spans} == {root.trace_id}
    assert attributes(root)["gen_ai.operation.name"] == "invoke_agent"
    lead, one = receiver.span("step lead"), receiver.span("step one")
    assert (lead.parent_span_id, one.parent_span_id) == (root.span_id, root.span_id)
    call = receiver.span("execute_tool list_directory")
    assert call.parent_span_id == lead.span_id
    assert attributes(call)["gen_ai.tool.name"] == "list_directory"
    chats = [span for span in receiver.spans if span.name.startswith("chat ")]
    assert sorted(span.parent_span_id for span in chats) == sorted([lead.span_id] * 3 + [one.span_id])
    first = attributes(min(chats, key=lambda span: span.end_time_unix_nano))
    assert (first["gen_ai.usage.input_tokens"], first["gen_ai.usage.output_tokens"]) == (100, 7)
    assert first["gen_ai.provider.name"] == "script"
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in receiver.spans)


def test_metrics_and_logs_arrive_too(user: User, receiver: Receiver) -> None:
    run(user, receiver.url, lead_call("list_directory", path="."), lead_reply("Done."))
    names = {metric.name for metric in receiver.metrics}
    assert {"gen_ai.client.token.usage", "gen_ai.client.operation.duration", "windlass.tool.calls"} <= names
    assert {"init", "result"} <= {record.event_name for record in receiver.logs}
    assert all(record.trace_id == receiver.spans[0].trace_id for record in receiver.logs if record.trace_id)


def test_texts_are_exported_only_on_request(user: User, receiver: Receiver) -> None:
    replies = (lead_call("run_command", command="echo marker-in-command"), lead_reply("marker in the answer"))
    run(user, receiver.url, *replies)
    assert not any(b"marker" in body for body in receiver.bodies)
    run(user, receiver.url, *replies, AGENT_OTEL_CONTENT="true")
    assert any(b"marker-in-command" in body for body in receiver.bodies)
    assert any(b"marker in the answer" in body for body in receiver.bodies)


def test_secrets_are_masked_in_exported_texts(user: User, receiver: Receiver) -> None:
    replies = (lead_call("run_command", command=f"echo {SECRET}"), lead_reply("Done."))
    run(user, receiver.url, *replies, AGENT_OTEL_CONTENT="true", OPENAI_API_KEY=SECRET)
    assert not any(SECRET.encode() in body for body in receiver.bodies)


def test_a_failed_call_is_an_error(user: User, receiver: Receiver) -> None:
    run(user, receiver.url, lead_call("read_file", path="missing.txt"), lead_reply("Done."))
    call = receiver.span("execute_tool read_file")
    assert attributes(call)["error.type"] == "error"
    assert call.status.code == call.status.STATUS_CODE_ERROR


def test_commands_get_the_trace(user: User, receiver: Receiver) -> None:
    result = run(user, receiver.url, lead_call("run_command", command="echo $TRACEPARENT"), lead_reply("Done."))
    (output,) = [event["output"] for event in result.events if event["type"] == "tool.completed"]
    assert str(output).strip() == traceparent(str(result.events[0]["run_id"]))
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", str(output).strip())


def test_nothing_is_exported_unless_it_is_configured(user: User, receiver: Receiver) -> None:
    run(user, "", lead_call("run_command", command="echo trace:$TRACEPARENT"), lead_reply("Done."))
    run(user, receiver.url, lead_reply("Done."), OTEL_SDK_DISABLED="true")
    assert receiver.bodies == []


def test_a_receiver_that_is_down_neither_fails_the_run_nor_is_shown(user: User) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        result = run(user, f"http://127.0.0.1:{unused.getsockname()[1]}", lead_reply("Done."))
    assert (result.exit_code, result.stderr) == (0, "")
    assert [event for event in result.events if event["type"] == "warning"] == []


def test_a_missing_extra_is_a_warning_with_its_install_line(user: User) -> None:
    words = ["run", "--model", user.script(lead_reply("Done.")), "-C", str(user.home), "go"]
    hidden = (
        "import sys; sys.modules['opentelemetry'] = None; "
        f"from cli.application import run_cli; sys.exit(run_cli({words!r}))"
    )
    environ = user.environment(**AUTO, AGENT_OTEL_ENDPOINT="http://127.0.0.1:9")
    ended = subprocess.run([sys.executable, "-c", hidden], env=environ, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "Done.\n")
    assert "pip install 'windlass[otel]'" in ended.stderr
