"""A session has one conversation: what the model was sent, folded from the log, whatever happened in between."""

import itertools
import json
import random
from collections.abc import Sequence

import pytest

from agent.app import App
from agent.execution.step.agent_loop import _STEERING_PREFIX
from agent.execution.step.described_change import MAKE_THE_CHANGE
from agent.model.port import ModelRequest
from agent.protocol.commands import Steer
from agent.sessions.resume.conversation import COMPACT_REQUEST, RESUMED_LATER, read_conversation, resumed_conversation
from agent.vocabulary import exit_codes
from agent.vocabulary.compaction import SUMMARY_PREFIX
from agent.vocabulary.message import Message
from agent.vocabulary.unfinished import FINISH, GO_ON, INTERRUPTED_REPLY, UNKNOWN_CALL
from tests.agent.execution.test_races import problems_of
from tests.agent.orchestrator.lead_runs import AUTO, FAILS, lead_requests
from tests.agent.orchestrator.run_harness import EventJson, FinishedRun, RunHarness
from tests.cli.terminal_user import answer, hand_out, lead_call, lead_reply, step, step_reply
from tooling.tool_catalog import load_catalog

EFFECTS = {spec.name: spec.effect for spec in load_catalog().specs}


@pytest.fixture
def session(harness: RunHarness) -> RunHarness:
    harness.session = "s"
    return harness


def folded(session: RunHarness) -> Sequence[Message]:
    return read_conversation(session.log, EFFECTS.get)


def ask(session: RunHarness, prompt: str, *replies: object, **flags: object) -> FinishedRun:
    session.prompt = prompt
    return session.run(*replies, **{**AUTO, **flags})


def resume(session: RunHarness, run: FinishedRun, *replies: object, **flags: object) -> FinishedRun:
    session.resumes = str(run.events[0]["run_id"])
    try:
        return session.run(*replies, **{**AUTO, **flags})
    finally:
        session.resumes = None


def check_log(session: RunHarness, requests: Sequence[ModelRequest], said: str) -> None:
    """The log is what the model was last sent and its reply, and no request changed what an earlier one had sent."""
    leads = lead_requests(requests)
    conversation = folded(session)
    assert list(conversation[:-1]) == list(leads[-1].messages[1:])
    assert (conversation[-1].role, conversation[-1].content) == ("assistant", said)
    check_prefixes(requests)
    assert problems_of(conversation) == []


def check_prefixes(requests: Sequence[ModelRequest]) -> None:
    for before, after in itertools.pairwise(lead_requests(requests)):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.tools == before.tools


def interrupt_at(text: str, kind: str = "message") -> "InterruptOnce":
    return InterruptOnce(text, kind)


class InterruptOnce:
    """Interrupts the run when an event contains a text."""

    def __init__(self, text: str, kind: str) -> None:
        self._text, self._kind = text, kind

    def __call__(self, app: App, event: EventJson) -> None:
        if event["type"] == self._kind and self._text in json.dumps(event):
            app.interrupt(exit_codes.INTERRUPTED, "interrupted")


def test_a_follow_up_continues_the_conversation(session: RunHarness, requests: list[ModelRequest]) -> None:
    (session.home / "config.ini").write_text("port = 8080\n")
    ask(session, "read the port", lead_call("read_file", path="config.ini"), lead_reply("It is 8080."))
    check_log(session, requests, "It is 8080.")
    ask(session, "and twice that?", lead_reply("16160."))
    check_log(session, requests, "16160.")
    last = requests[-1].messages
    assert [message.role for message in last] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert "port = 8080" in last[3].content and last[-1].content == "and twice that?"


def test_failed_calls_plans_nudges_and_empty_replies_are_part_of_it(
    session: RunHarness, requests: list[ModelRequest]
) -> None:
    ask(
        session,
        "fix the bug in x.py",
        lead_call("read_file", path="missing.txt"),
        hand_out(step("a"), step("b")),
        FAILS,
        step_reply("b", "B", delay_ms=500),
        lead_reply("I think so."),
        lead_reply("", reasoning="hm"),
        {**lead_reply("It is"), "finish_reason": "length"},
        lead_reply("done."),
        lead_reply("It is done."),
    )
    ask(session, "thanks", {**lead_reply("You are welcome."), "reasoning": "be polite"})
    check_log(session, requests, "You are welcome.")
    ask(session, "again", lead_reply("Yes."))
    check_log(session, requests, "Yes.")


def test_a_nudge_to_make_the_change_is_part_of_it(session: RunHarness, requests: list[ModelRequest]) -> None:
    described = "You need to change `x.py`:\n```python\nimport math\n```"
    looked = lead_call("run_command", command="ls")
    run = ask(session, "fix the bug in x.py", looked, lead_reply(described), lead_reply(described))
    # Nothing was changed: that is no success, although there is an answer.
    assert (run.outcome.exit_code, run.outcome.answer) == (1, described)
    ask(session, "well?", lead_reply("Sorry."))
    check_log(session, requests, "Sorry.")
    assert MAKE_THE_CHANGE in [message.content for message in folded(session)]


def test_what_the_user_adds_is_part_of_it(session: RunHarness, requests: list[ModelRequest]) -> None:
    def steer(app: App, event: EventJson) -> None:
        if event["type"] == "tool.started":
            app.send(Steer(text="only the short ones"))

    session.on_event = steer
    ask(session, "list files", lead_call("run_command", command="ls; sleep 0.3"), lead_reply("None."))
    check_log(session, requests, "None.")
    assert f"{_STEERING_PREFIX}only the short ones" in [message.content for message in folded(session)]


def test_an_interrupted_reply_is_kept_and_the_next_request_knows_it(
    session: RunHarness, requests: list[ModelRequest]
) -> None:
    session.on_event = interrupt_at("first half")
    run = ask(session, "tell me", {**lead_reply("first half, second half"), "chunks": 2, "chunk_delay_ms": 30_000})
    assert run.outcome.exit_code == 130
    assert folded(session)[-1].content == f"first half, {INTERRUPTED_REPLY}"
    session.on_event = lambda app, event: None
    ask(session, "shorter", lead_reply("ok"))
    check_log(session, requests, "ok")
    assert requests[-1].messages[-2].content == f"first half, {INTERRUPTED_REPLY}"


def test_an_interrupted_reply_is_continued_on_resume(session: RunHarness, requests: list[ModelRequest]) -> None:
    session.on_event = interrupt_at("first half")
    run = ask(session, "tell me", {**lead_reply("first half, second half"), "chunks": 2, "chunk_delay_ms": 30_000})
    session.on_event = lambda app, event: None
    assert resume(session, run, lead_reply("the rest")).outcome.answer == "the rest"
    assert requests[-1].messages[-1].content == GO_ON
    check_log(session, requests, "the rest")


def test_an_interrupted_command_is_known_to_the_next_request(session: RunHarness, requests: list[ModelRequest]) -> None:
    session.on_event = interrupt_at("sleep 50", "tool.started")
    ask(session, "build it", lead_call("run_command", command="touch made; sleep 50"), lead_reply("never said"))
    session.on_event = lambda app, event: None
    ask(session, "what happened?", lead_reply("It was stopped."))
    check_log(session, requests, "It was stopped.")
    [result] = [message.content for message in folded(session) if message.role == "tool"]
    assert result == UNKNOWN_CALL or "stopped" in result.lower() or "cancel" in result.lower()


def test_a_failed_request_is_known_to_the_next_one(session: RunHarness, requests: list[ModelRequest]) -> None:
    run = ask(session, "count", lead_call("run_command", command="echo one"), lead_reply("", fault="refused"))
    assert run.outcome.exit_code == 1
    ask(session, "go on", lead_reply("one"))
    check_log(session, requests, "one")
    assert [message.role for message in requests[-1].messages[1:]] == ["user", "assistant", "tool", "user"]


def test_a_failed_answer_goes_on_when_resumed(session: RunHarness, requests: list[ModelRequest]) -> None:
    run = ask(
        session, "both", hand_out(step("a"), step("c")), FAILS, step_reply("c", "C"), lead_reply("C.", repeat=True)
    )
    assert run.outcome.exit_code == 1
    again = resume(session, run, hand_out(step("x")), step_reply("x", "X"), lead_reply("Both."))
    assert (again.outcome.exit_code, again.outcome.answer) == (0, "Both.")
    assert FINISH in [message.content for message in folded(session)]
    assert again.statuses["c"] == "ok" and again.statuses["a"] == "error"
    check_log(session, requests, "Both.")


def test_a_request_can_be_resumed_after_others(session: RunHarness, requests: list[ModelRequest]) -> None:
    run = ask(session, "first", lead_reply("", fault="refused"))
    ask(session, "second", lead_reply("two"))
    resume(session, run, lead_reply("one"))
    check_log(session, requests, "one")
    assert requests[-1].messages[-1].content == RESUMED_LATER.format(request="first")
    ask(session, "third", lead_reply("three"))
    check_log(session, requests, "three")


def test_a_fresh_step_of_a_resumed_follow_up_knows_where_it_is(
    session: RunHarness, requests: list[ModelRequest]
) -> None:
    ask(session, "first", lead_reply("one"))
    run = ask(session, "second", lead_reply("", fault="refused"))
    resume(session, run, hand_out(step("a")), step_reply("a", "A"), lead_reply("two"))
    [fresh] = [request for request in requests if request.step_id == "a"]
    assert fresh.messages[1].content.count("<environment>") == 1


def test_a_planned_request_in_between_is_there_with_its_answer(
    session: RunHarness, requests: list[ModelRequest]
) -> None:
    ask(session, "first", lead_reply("one"))
    ask(session, "second", answer("two"), planning="always")
    ask(session, "third", lead_reply("three"))
    check_log(session, requests, "three")
    assert [message.content for message in folded(session)[-4:]] == ["second", "two", "third", "three"]


def test_a_summary_replaces_what_was_before_it(session: RunHarness, requests: list[ModelRequest]) -> None:
    ask(session, "first", lead_reply("one"))
    ask(session, COMPACT_REQUEST, lead_reply("They counted to one."))
    assert [message.content for message in folded(session)] == [f"{SUMMARY_PREFIX}They counted to one."]
    requests.clear()
    ask(session, "third", lead_reply("three"))
    check_log(session, requests, "three")


def test_a_shortened_conversation_is_folded_as_it_was_sent(session: RunHarness, requests: list[ModelRequest]) -> None:
    calls = [lead_call("run_command", command=f"seq {n}000 {n}999; seq {n}0000 {n}3000") for n in range(1, 10)]
    summary = {"match": {"purpose": "summary"}, "text": "They counted.", "repeat": True}
    run = ask(session, "count", *calls[:5], summary, lead_reply("Counted."))
    shortened = len(run.of_type("context"))
    run = ask(session, "count on", *calls[5:], summary, lead_reply("Counted on."))
    assert shortened + len(run.of_type("context")) > 1
    conversation = folded(session)
    assert list(conversation[:-1]) == list(lead_requests(requests)[-1].messages[1:])
    assert problems_of(conversation) == []
    ask(session, "thanks", summary, lead_reply("Welcome."))
    assert lead_requests(requests)[-1].messages[1 : len(conversation) + 1] == tuple(conversation)


def test_a_log_cut_at_any_line_continues_with_every_provider(session: RunHarness) -> None:
    ask(
        session,
        "work",
        lead_call("run_command", command="echo one"),
        {**hand_out(step("a"), step("b", "a")), "chunks": 10, "chunk_delay_ms": 10},
        step_reply("a", "A"),
        step_reply("b", "B"),
        lead_reply("Done."),
    )
    ask(session, "more", lead_call("run_command", command="echo two"), lead_reply("Two."))
    lines = session.log.read_bytes().splitlines(keepends=True)
    for count in range(1, len(lines) + 1):
        session.log.write_bytes(b"".join(lines[:count]))
        known = folded(session)
        assert problems_of(known) == [], f"after {count} lines"
        run_id = str(json.loads(lines[count - 1])["run_id"])
        led = resumed_conversation(session.log, run_id, EFFECTS.get)
        closed = [Message(role="tool", content="x", tool_call_id=call.id) for call in led.open_calls]
        assert problems_of([*led.messages, *closed]) == [], f"after {count} lines"


def test_a_run_killed_at_any_line_is_resumed_and_its_conversation_is_what_was_sent(
    session: RunHarness, requests: list[ModelRequest]
) -> None:
    script = (
        lead_call("run_command", command="echo one"),
        {**hand_out(step("a"), step("b", "a")), "chunks": 10, "chunk_delay_ms": 10},
        {**step_reply("a", "A"), "repeat": True},
        {**step_reply("b", "B"), "repeat": True},
        {**lead_reply("Done."), "repeat": True},
    )
    first = ask(session, "work", *script)
    lines = session.log.read_bytes().splitlines(keepends=True)
    places = [index for index, line in enumerate(lines) if b'"role": "user"' in line]
    for count in sorted(random.sample(range(places[0] + 1, len(lines)), 8)):
        session.log.write_bytes(b"".join(lines[:count]))
        requests.clear()
        run = resume(session, first, lead_reply("Done.", repeat=True), *script[2:4])
        assert run.outcome.exit_code == 0, f"after {count} lines: {run.outcome.error}"
        if lead_requests(requests):
            check_log(session, requests, "Done.")
        assert sum(message.content.endswith("work") for message in folded(session) if message.role == "user") == 1
