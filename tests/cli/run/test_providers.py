"""The real program against a local HTTP server that answers, fails and recovers like a provider."""

import pytest

from tests.cli.terminal_user import ProgramResult, User
from tests.provider.replies import Calls, Text
from tests.provider.responses import error_body, json_response
from tests.provider.threaded import ThreadedProvider

pytestmark = pytest.mark.slow

MODELS = ("openai/test-model", "anthropic/test-model")
KEY = "sk-SENTINEL-0123456789abcdef"
PLAN = '{"steps": [{"id": "s1", "title": "Do it", "instruction": "do it"}]}'
ANSWER = Text('{"answer": "42"}')


def run(
    user: User, provider: ThreadedProvider, *more: str, model: str = MODELS[0], is_request: bool = True
) -> ProgramResult:
    address = ("--set", f"api_base={provider.base_url}", "--set", f"api_key={KEY}")
    request = ("what is it?",) if is_request else ()
    ended = user.agent("run", *request, "--model", model, *address, *more)
    assert "Traceback" not in ended.stderr
    assert KEY not in ended.stdout + ended.stderr
    return ended


@pytest.mark.parametrize("model", MODELS)
def test_a_trivial_question_is_one_request_on_one_connection(user: User, model: str) -> None:
    with ThreadedProvider(ANSWER) as provider:
        ended = run(user, provider, model=model)
    assert (ended.exit_code, ended.stdout, len(provider.requests)) == (0, "42\n", 1)


@pytest.mark.parametrize("model", MODELS)
def test_parallel_calls_work_with_both_wire_formats(user: User, model: str) -> None:
    script = (
        Text(PLAN),
        Calls(("run_command", {"command": "echo one > a.txt"}), ("run_command", {"command": "echo two > b.txt"})),
        Calls(("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})),
        Text("one and two"),
    )
    with ThreadedProvider(*script) as provider:
        ended = run(user, provider, "--output-format", "json", model=model)
    calls = ended.document["step_results"][0]["tool_calls"]
    assert (ended.exit_code, ended.document["result"], provider.connections) == (0, "one and two", 1)
    assert [call["output_preview"].strip() for call in calls[2:]] == ["one", "two"]


def test_a_model_without_reasoning_answers_with_a_warning(user: User) -> None:
    rejection = json_response(400, error_body("openai", "invalid_request_error", "reasoning_effort is not supported"))
    with ThreadedProvider(rejection, ANSWER) as provider:
        ended = run(user, provider, "--reasoning", "high")
    assert (ended.exit_code, ended.stdout) == (0, "42\n")
    assert "warning: openai/test-model does not take reasoning high" in ended.stderr
    assert [request.body.get("reasoning_effort") for request in provider.requests] == ["high", None]


def test_an_unknown_amount_of_reasoning_is_a_usage_error(user: User) -> None:
    ended = user.agent("run", "x", "--model", MODELS[0], "--reasoning", "much")
    assert ended.exit_code == 2
    assert "--reasoning: expected one of off, low, medium, high, got 'much'" in ended.stderr


@pytest.mark.parametrize(
    ("fault", "exit_code", "requests", "message"),
    [
        ("auth", 41, 1, "rejected the API key"),
        ("quota", 41, 1, "no credit or quota"),
        ("unknown_model", 52, 1, "does not know this model"),
        ("bad_request", 1, 1, "rejected the request"),
        ("overflow", 1, 1, "too long for the model"),
        ("500", 75, 4, "server error"),
        ("reset", 75, 3, "connection was lost"),
        ("malformed", 75, 2, "could not be parsed"),
        ("silence", 75, 2, "did not reply"),
        ("stops_between_chunks", 75, 2, "stalled"),
        ("reset_at_once", 75, 3, "closed the connection before it replied"),
        ("filtered", 1, 1, "a content filter stopped its reply: The first step is"),
        ("refusal", 1, 1, "the model refused to answer"),
    ],
)
def test_a_permanent_fault_has_its_exit_code_and_message(
    user: User, fault: str, exit_code: int, requests: int, message: str
) -> None:
    timeouts = ("--set", "first_byte_timeout_s=0.4", "--set", "chunk_timeout_s=0.4")
    with ThreadedProvider() as provider:
        provider.fault(fault, times=9)
        ended = run(user, provider, *timeouts)
    assert (ended.exit_code, len(provider.requests)) == (exit_code, requests)
    assert message in ended.stderr


@pytest.mark.parametrize(("fault", "limit", "requests"), [("500", 0, 1), ("500", 1, 2), ("rate_limit", 0, 1)])
def test_max_retries_limits_the_retries_of_a_run(user: User, fault: str, limit: int, requests: int) -> None:
    with ThreadedProvider() as provider:
        provider.fault(fault, times=9, retry_after="0")
        ended = run(user, provider, "--set", f"max_retries={limit}")
    assert (ended.exit_code, len(provider.requests)) == (75, requests)


@pytest.mark.parametrize(("profile", "requests"), [("once", 1), ("developer", 1), ("reviewer", 2)])
def test_max_retries_of_a_profile_limits_the_retries_of_its_steps(user: User, profile: str, requests: int) -> None:
    plan = user.home / "plan.toml"
    plan.write_text(f'request = "x"\n[[steps]]\nid = "s1"\ninstruction = "do it"\nprofile = "{profile}"\n')
    with ThreadedProvider() as provider:
        provider.fault("500", times=9)
        run(user, provider, "--plan", str(plan), "--set", "step_profiles.once.max_retries=0", is_request=False)
    assert len(provider.requests) == requests


@pytest.mark.parametrize("reply", [Text(" \n"), Text("{}"), Text("Let me think about it."), None])
def test_a_planner_that_plans_nothing_leaves_the_request_to_one_step(user: User, reply: Text | None) -> None:
    with ThreadedProvider() as provider:
        if reply is None:
            provider.fault("empty", times=2)
        else:
            provider.reply(*[reply] * (2 if not reply.text.strip() else 1))
        provider.reply(Text("It is done."))
        ended = run(user, provider, "--output-format", "json")
    (step,) = ended.document["step_results"]
    assert (ended.exit_code, ended.document["result"], step["task_id"]) == (0, "It is done.", "step1")


@pytest.mark.parametrize("fault", ["rate_limit", "overloaded", "500", "reset", "malformed", "empty"])
def test_a_transient_fault_is_retried(user: User, fault: str) -> None:
    with ThreadedProvider() as provider:
        provider.fault(fault, retry_after="0")
        provider.reply(ANSWER)
        ended = run(user, provider)
    assert (ended.exit_code, ended.stdout, len(provider.requests)) == (0, "42\n", 2)
    assert "retrying in" in ended.stderr


def test_an_unreachable_server_is_a_temporary_failure(user: User) -> None:
    with ThreadedProvider() as provider:
        provider.stop_listening()
        ended = run(user, provider)
    assert (ended.exit_code, "could not connect" in ended.stderr) == (75, True)


@pytest.mark.parametrize("fault", ["invalid_arguments", "truncated_arguments"])
def test_invalid_arguments_are_reported_to_the_model_and_nothing_runs(user: User, fault: str) -> None:
    with ThreadedProvider(Text(PLAN)) as provider:
        provider.fault(fault)
        provider.reply(Text("I will do it differently"))
        ended = run(user, provider)
    tool_result = provider.requests[2].body["messages"][-1]["content"]
    assert (ended.exit_code, "arguments" in tool_result) == (1, True)
    assert not (user.home / "notes.txt").exists()


def test_a_conversation_that_is_too_long_is_summarized_and_continued(user: User) -> None:
    chatter = [Calls(("run_command", {"command": f"seq {n} 900"})) for n in range(4)]
    with ThreadedProvider(Text(PLAN), *chatter) as provider:
        provider.fault("overflow")
        provider.reply(Text("Numbers were counted."), Text("done"))
        ended = run(user, provider)
    assert (ended.exit_code, ended.stdout) == (0, "done\n")
    too_long, _, after = provider.requests[-3:]
    assert after.size < too_long.size
    assert "Numbers were counted." in str(after.body["messages"])


def test_redirects_are_not_followed_with_the_key(user: User) -> None:
    with ThreadedProvider() as provider:
        provider.fault("redirect", times=3)
        ended = run(user, provider)
    assert (ended.exit_code, len(provider.requests)) == (1, 1)
