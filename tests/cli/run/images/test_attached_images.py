"""Images as a user attaches them, as tools return them, and after a kill."""

import base64
import json
from pathlib import Path

import pytest

from agent.model.vision import cannot_see
from tests.cli.run.resume.test_resume import STREAM, is_event, run_until
from tests.cli.terminal_user import ProgramResult, User, answer, plan, step, step_call
from tests.provider.replies import Calls, Text
from tests.provider.threaded import ThreadedProvider
from tests.tooling.images.sample_images import SHOT, png
from tooling.files.blobs import content_hash
from tooling.images.header import BROKEN

pytestmark = pytest.mark.slow

PLAN = Text('{"steps": [{"id": "s1", "title": "Look", "instruction": "look at it"}]}')
DATA = base64.b64encode(SHOT).decode()


def run(user: User, provider: ThreadedProvider, *more: str, model: str) -> ProgramResult:
    return user.agent("run", *more, "--model", model, "--set", f"api_base={provider.base_url}", "--set", "api_key=key")


def sent(provider: ThreadedProvider) -> list[str]:
    return [json.dumps(request.body) for request in provider.requests]


@pytest.mark.parametrize("model", ["openai/test-model", "anthropic/test-model"])
def test_an_attached_image_reaches_the_model(user: User, shot: Path, model: str) -> None:
    with ThreadedProvider(PLAN, Text("a gray box")) as provider:
        ended = run(user, provider, "what is it?", "-f", str(shot), model=model)
    assert (ended.exit_code, ended.stdout) == (0, "a gray box\n")
    assert "[image shot.png 40x30]" in ended.stderr
    assert [text.count(DATA) for text in sent(provider)] == [1, 1]
    assert "Attached: [image shot.png 40x30]" in sent(provider)[1]


@pytest.mark.parametrize("model", ["openai/test-model", "anthropic/test-model"])
def test_an_image_that_a_tool_reads_reaches_the_model(user: User, shot: Path, model: str) -> None:
    calls = Calls(("read_file", {"path": "shot.png"}))
    with ThreadedProvider(PLAN, calls, Text("a gray box")) as provider:
        ended = run(user, provider, "look at shot.png", "-C", str(user.home), model=model)
    assert (ended.exit_code, ended.stdout) == (0, "a gray box\n")
    assert "read_file shot.png [image shot.png 40x30]" in ended.stderr
    assert [text.count(DATA) for text in sent(provider)] == [0, 0, 1]


def test_a_model_that_cannot_see_is_an_error_before_anything_is_sent(user: User, shot: Path) -> None:
    with ThreadedProvider() as provider:
        ended = run(user, provider, "what is it?", "-f", str(shot), model="openai/gpt-3.5-turbo")
    assert (ended.exit_code, ended.stdout, provider.requests) == (42, "", [])
    assert f"error: {cannot_see('openai/gpt-3.5-turbo')}\n" in ended.stderr
    assert "--set vision=yes" in ended.stderr


def test_a_damaged_image_is_an_error_before_anything_is_sent(user: User, shot: Path) -> None:
    shot.write_bytes(SHOT[:50])
    ended = user.agent("run", "what is it?", "-f", str(shot), "--model", user.script(answer("no")))
    assert (ended.exit_code, f"cannot attach {shot}: {BROKEN}" in ended.stderr) == (42, True)


def test_an_image_without_its_extension_is_attached_and_text_named_like_one_is_text(user: User, shot: Path) -> None:
    (user.home / "fake.png").write_text("just words")
    shot.rename(user.home / "shot")
    script = user.script({"match": {"contains": "just words"}, "text": '{"answer": "ok"}'})
    files = ("-f", str(user.home / "shot"), "-f", str(user.home / "fake.png"))
    ended = user.agent("run", "look", *files, "--model", script, "--ephemeral", *STREAM)
    (request,) = [event for event in ended.events if event["type"] == "message" and event.get("images")]
    assert [image["name"] for image in request["images"]] == ["shot"]  # type: ignore[attr-defined]


def test_the_log_has_a_reference_and_the_session_has_the_bytes_once(user: User, shot: Path) -> None:
    script = user.script(plan(step("a")), step_call("a", "read_file", path=str(shot)), {"text": "gray"})
    words = ("run", "look", "-f", str(shot), "-C", str(user.home), "--session", "s", "--model", script)
    assert user.agent(*words).exit_code == 0
    session = user.data / "sessions/s"
    reference = {
        "sha256": content_hash(SHOT),
        "media_type": "image/png",
        "width": 40,
        "height": 30,
        "size": len(SHOT),
        "name": "shot.png",
    }
    events = [json.loads(line) for line in (session / "events.jsonl").read_text().splitlines()]
    logged = [(event["type"], event["images"]) for event in events if "images" in event]
    assert logged == [("message", [reference]), ("tool.completed", [reference])]
    assert {path.name: path.read_bytes() for path in (session / "blobs").iterdir()} == {content_hash(SHOT): SHOT}
    assert user.agent("sessions", "fsck", "s").exit_code == 0
    exported = user.agent("sessions", "export", "s", "--format", "markdown").stdout
    assert exported.count("[image shot.png 40x30]") == 2


@pytest.mark.parametrize("fork", [(), ("--fork",)])
def test_after_a_kill_the_model_sees_the_same_images_again(user: User, shot: Path, fork: tuple[str, ...]) -> None:
    script = user.script(
        plan(step("a")),
        step_call("a", "read_file", path="plot.png"),
        step_call("a", "run_command", command="sleep 60"),
    )
    plot = png(20, 10)
    (user.home / "plot.png").write_bytes(plot)
    words = ("run", "look", "-f", str(shot), "-C", str(user.home), "--session", "s", "--model", script)
    run_until(user, *words, at=lambda event: is_event("tool.started", "a")(event) and event["name"] == "run_command")
    shot.unlink()
    (user.home / "plot.png").unlink()
    with ThreadedProvider(Text("gray")) as provider:
        address = ("--set", f"api_base={provider.base_url}", "--set", "api_key=key")
        ended = user.agent("run", "-r", "s", *fork, "--model", "anthropic/test-model", *address)
    assert (ended.exit_code, ended.stdout) == (0, "gray\n"), ended.stderr
    (request,) = sent(provider)
    assert [request.count(data) for data in (DATA, base64.b64encode(plot).decode())] == [1, 1]


def test_a_recorded_run_with_an_image_is_replayed(user: User, shot: Path) -> None:
    cassette = str(user.home / "tape.jsonl")
    words = ("run", "look", "-f", str(shot))
    recorded = user.agent(*words, "--record", cassette, "--model", user.script(answer("gray")))
    replayed = user.agent(*words, "--replay", cassette)
    assert (recorded.stdout, replayed.stdout, replayed.exit_code) == ("gray\n", "gray\n", 0)
    shot.write_bytes(png(41, 30))
    assert user.agent(*words, "--replay", cassette).exit_code == 1
