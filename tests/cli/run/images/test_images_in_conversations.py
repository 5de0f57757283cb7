"""Images over several requests of a session with a lead: what was seen once stays in the conversation."""

import base64
import json
from pathlib import Path

import pytest

from tests.cli.run.images.test_attached_images import DATA, run, sent
from tests.cli.run.resume.test_resume import is_event, run_until
from tests.cli.terminal_user import User
from tests.provider.replies import Calls, Text
from tests.provider.threaded import ThreadedProvider
from tests.tooling.images.sample_images import png

pytestmark = pytest.mark.slow

PLOT = png(20, 10)
PLOT_DATA = base64.b64encode(PLOT).decode()


@pytest.fixture(autouse=True)
def lead(user: User) -> None:
    user.environ["AGENT_PLANNING"] = "auto"


def messages_of(text: str) -> list[object]:
    """Return what a request sends, without the marks for caching, which move on."""
    messages = json.loads(text)["messages"]
    for message in messages:
        for block in message["content"] if isinstance(message["content"], list) else ():
            block.pop("cache_control", None)
    return list(messages)


@pytest.mark.parametrize("model", ["openai/test-model", "anthropic/test-model"])
def test_a_follow_up_begins_with_the_images_of_earlier_requests(user: User, shot: Path, model: str) -> None:
    (user.home / "plot.png").write_bytes(PLOT)
    look = Calls(("read_file", {"path": "plot.png"}))
    with ThreadedProvider(look, Text("a gray box"), Text("gray")) as provider:
        first = run(user, provider, "what is it?", "-f", str(shot), "-C", str(user.home), "--session", "s", model=model)
        shot.unlink()
        second = run(user, provider, "which color?", "-r", "s", model=model)
    assert (first.stdout, second.stdout) == ("a gray box\n", "gray\n"), second.stderr
    requests = sent(provider)
    assert [(text.count(DATA), text.count(PLOT_DATA)) for text in requests] == [(1, 0), (1, 1), (1, 1)]
    _, before, after = map(messages_of, requests)
    assert after[: len(before)] == before


def test_a_model_that_cannot_see_continues_a_conversation_with_images(user: User, shot: Path) -> None:
    with ThreadedProvider(Text("a gray box"), Text("gray, you said")) as provider:
        run(user, provider, "what is it?", "-f", str(shot), "--session", "s", model="openai/test-model")
        second = run(user, provider, "which color?", "-r", "s", model="openai/gpt-3.5-turbo")
    assert (second.exit_code, second.stdout) == (0, "gray, you said\n"), second.stderr
    assert [text.count(DATA) for text in sent(provider)] == [1, 0]
    assert "[image shot.png 40x30: this model cannot see images]" in sent(provider)[1]


def test_a_model_that_cannot_see_is_an_error_before_the_lead_is_asked(user: User, shot: Path) -> None:
    with ThreadedProvider() as provider:
        ended = run(user, provider, "what is it?", "-f", str(shot), model="openai/gpt-3.5-turbo")
    assert (ended.exit_code, ended.stdout, provider.requests) == (42, "", [])


@pytest.mark.parametrize("context", ["fresh", "fork"])
def test_steps_of_the_lead_see_the_images_once(user: User, shot: Path, context: str) -> None:
    steps = [{"id": "a", "instruction": "look at it", "context": context}]
    with ThreadedProvider(Calls(("plan", {"steps": steps})), Text("gray"), Text("a gray box")) as provider:
        ended = run(user, provider, "what is it?", "-f", str(shot), model="anthropic/test-model")
    assert (ended.exit_code, ended.stdout) == (0, "a gray box\n"), ended.stderr
    assert [text.count(DATA) for text in sent(provider)] == [1, 1, 1]


def test_after_a_kill_the_lead_sees_the_same_images_again(user: User, shot: Path) -> None:
    (user.home / "plot.png").write_bytes(PLOT)
    script = user.script(
        {"tool_calls": [{"name": "read_file", "arguments": {"path": "plot.png"}}]},
        {"tool_calls": [{"name": "run_command", "arguments": {"command": "sleep 60"}}]},
    )
    words = ("run", "look", "-f", str(shot), "-C", str(user.home), "--session", "s", "--model", script)
    run_until(user, *words, at=lambda event: is_event("tool.started", "lead")(event) and event["name"] == "run_command")
    shot.unlink()
    (user.home / "plot.png").unlink()
    with ThreadedProvider(Text("gray")) as provider:
        address = ("--set", f"api_base={provider.base_url}", "--set", "api_key=key")
        ended = user.agent("run", "-r", "s", "--model", "anthropic/test-model", *address)
    assert (ended.exit_code, ended.stdout) == (0, "gray\n"), ended.stderr
    (request,) = sent(provider)
    assert (request.count(DATA), request.count(PLOT_DATA)) == (1, 1)
