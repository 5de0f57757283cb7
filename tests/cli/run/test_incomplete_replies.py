"""Replies that are refused, filtered, cut off or never end: none of them is a success, and each says what to do."""

import json

import pytest

from agent.model.faults import FAULTS
from tests.cli.terminal_user import ProgramResult, User, composer_reply, plan, step, step_reply
from tests.provider.replies import Reply, Text
from tests.provider.server import Fault
from tests.provider.threaded import ThreadedProvider

pytestmark = pytest.mark.slow
MODELS = ("openai/test-model", "anthropic/test-model")
PLAN = plan(step("a"), step("b"))
DONE = (step_reply("a", "A is done."), step_reply("b", "B is done."))
FILTERED, CUT_OFF, TIME_LIMIT = FAULTS["filtered"], FAULTS["cut_off"], FAULTS["time_limit"]


def run(user: User, *replies: dict[str, object], planning: str = "always", more: tuple[str, ...] = ()) -> ProgramResult:
    ended = user.agent(
        "run",
        "do it",
        *("--model", user.script(*replies), "--planning", planning, "--output-format", "json", "--replan", "never"),
        *more,
    )
    assert "Traceback" not in ended.stderr
    return ended


def said(purpose: str, text: str, finish_reason: str) -> dict[str, object]:
    return {"match": {"purpose": purpose}, "text": text, "finish_reason": finish_reason, "repeat": True}


@pytest.mark.parametrize("reason", ["content_filter", "refusal", "SAFETY"])
@pytest.mark.parametrize(
    ("planning", "replies", "subtype", "answer"),
    [
        ("auto", lambda reason: (said("lead", "The first step is", reason),), "error_task", ""),
        ("always", lambda reason: (said("planner", '{"answer": "no', reason),), "error_task", ""),
        ("always", lambda reason: (PLAN, said("step", "No.", reason)), "error_task", ""),
        (
            "always",
            lambda reason: (PLAN, *DONE, said("composer", "They are", reason)),
            "partial",
            "A is done.\n\nB is done.",
        ),
    ],
    ids=["lead", "planner", "step", "composer"],
)
def test_a_filtered_reply_is_no_success(
    user: User, planning: str, replies: object, subtype: str, answer: str, reason: str
) -> None:
    assert callable(replies)
    ended = run(user, *replies(reason), planning=planning)
    assert (ended.exit_code, ended.document["subtype"], ended.document["result"]) == (1, subtype, answer)
    assert FILTERED.message in ended.stderr
    assert f"hint: {FILTERED.hint}" in ended.stderr


def test_a_filtered_call_is_not_made(user: User) -> None:
    call = {"name": "write_file", "arguments": {"path": "made.txt", "content": "x"}}
    reply = {"match": {"purpose": "lead"}, "tool_calls": [call], "finish_reason": "content_filter"}
    ended = run(user, reply, planning="auto", more=("-C", str(user.home), "--approval-mode", "auto-edit"))
    assert (ended.exit_code, (user.home / "made.txt").exists()) == (1, False)


@pytest.mark.parametrize(
    ("planning", "replies", "subtype", "answer"),
    [
        ("auto", (said("lead", "More. ", "length"),), "partial", "More. More. "),
        ("always", (said("planner", '{"answer": "for', "length"),), "error_task", ""),
        ("always", (said("planner", json.dumps({"steps": [step("a")]})[:-1] + ",", "length"),), "error_task", ""),
        ("always", (PLAN, said("step", "More. ", "length"), composer_reply("Both.")), "partial", "Both."),
        ("always", (PLAN, *DONE, said("composer", "More. ", "length")), "partial", "More. More."),
    ],
    ids=["lead", "planner", "plan", "step", "composer"],
)
def test_a_reply_cut_off_twice_is_no_success(
    user: User, planning: str, replies: tuple[dict[str, object], ...], subtype: str, answer: str
) -> None:
    ended = run(user, *replies, planning=planning)
    assert (ended.exit_code, ended.document["subtype"], ended.document["result"]) == (1, subtype, answer)
    assert "cut off at " in ended.stderr
    assert f"hint: {CUT_OFF.hint}" in ended.stderr


def test_a_plan_and_an_answer_cut_off_once_are_continued(user: User) -> None:
    text = json.dumps({"steps": [step("a"), step("b", "a")]})
    halves = [
        {"match": {"purpose": "planner"}, "text": text[:150], "finish_reason": "length"},
        {"match": {"purpose": "planner", "contains": "Go on exactly"}, "text": text[150:]},
        {"match": {"purpose": "composer"}, "text": "Both are", "finish_reason": "length"},
        {"match": {"purpose": "composer", "contains": "Go on exactly"}, "text": " done."},
    ]
    ended = run(user, *halves, *DONE)
    assert (ended.exit_code, ended.document["result"]) == (0, "Both are done.")
    assert [result["status"] for result in ended.document["step_results"]] == ["ok", "ok"]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["keep_alives", "beginning_then_keep_alives"])
def test_a_stream_of_keep_alives_ends_at_the_time_limit_of_a_reply(user: User, model: str, name: str) -> None:
    with ThreadedProvider() as provider:
        provider.fault(name, times=3)
        limits = ("--set", f"api_base={provider.base_url}", "--set", "api_key=x", "--set", "reply_timeout_s=1.5")
        ended = user.agent("run", "x", "--model", model, *limits)
        assert len(provider.requests) <= 1
    assert ended.exit_code == 75
    assert f"error: {TIME_LIMIT.message}: 1.5 s\nhint: {TIME_LIMIT.hint}" in ended.stderr


@pytest.mark.parametrize("purpose", ["planner", "step", "composer", "lead"])
def test_every_model_call_has_a_time_limit(user: User, purpose: str) -> None:
    slow = {"match": {"purpose": purpose}, "text": '{"answer": "late"}', "delay_ms": 600_000}
    others = [reply for reply in (PLAN, *DONE) if reply["match"] != {"purpose": purpose}]
    if purpose == "step":
        others = [PLAN]
        slow["repeat"] = True
    planning = "auto" if purpose == "lead" else "always"
    ended = run(user, *others, slow, planning=planning, more=("--set", "reply_timeout_s=0.5"))
    # The results of the steps are an answer, too.
    assert ended.exit_code == (0 if purpose == "composer" else 75)
    assert TIME_LIMIT.message in ended.stderr


def test_a_step_that_fails_by_a_fault_prints_what_to_do(user: User) -> None:
    fault = {"match": {"purpose": "step"}, "fault": "quota", "repeat": True}
    ended = run(user, PLAN, fault)
    assert ended.exit_code == 41
    assert f"hint: {FAULTS['quota'].hint}" in ended.stderr


def test_identical_reads_in_one_reply_do_not_end_the_step(user: User) -> None:
    (user.home / "a.txt").write_text("content\n")
    calls = [{"name": "read_file", "arguments": {"path": "a.txt"}}] * 200
    reply = {"match": {"purpose": "lead"}, "tool_calls": calls}
    answer = {"match": {"purpose": "lead"}, "text": "It is content."}
    ended = run(user, reply, answer, planning="auto", more=("-C", str(user.home)))
    assert (ended.exit_code, ended.document["result"]) == (0, "It is content.")


def test_a_filtered_reply_over_http_costs_what_had_arrived(user: User) -> None:
    with ThreadedProvider(Reply(text="The first step is", finish="content_filter")) as provider:
        words = ("--set", f"api_base={provider.base_url}", "--set", "api_key=x", "--output-format", "json")
        document = user.agent("run", "x", "--model", MODELS[0], *words).document
    assert document["usage"]["requests"] == 1


def test_the_memory_of_a_run_does_not_wait_for_a_model_that_never_ends(user: User) -> None:
    (user.home / "data").mkdir(mode=0o700, exist_ok=True)
    with ThreadedProvider(Text('{"answer": "I will remember that."}'), Fault(name="keep_alives")) as provider:
        words = ("--set", f"api_base={provider.base_url}", "--set", "api_key=x", "--set", "memory_timeout_s=0.5")
        ended = user.agent("run", "remember that I like tea", "--model", MODELS[0], *words)
    assert ended.exit_code == 0
