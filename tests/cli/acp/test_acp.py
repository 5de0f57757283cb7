"""`agent acp`, driven by the SDK's own client over real pipes."""

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError, text_block
from acp.helpers import embedded_text_resource, resource_block, resource_link_block
from acp.schema import ImageContentBlock

from tests.cli.acp.editor import LIMIT_S, Editor, open_editor
from tests.cli.terminal_user import User, hand_out, lead_call, lead_reply, step, step_call, step_reply
from tests.tooling.mcp.test_hostile_servers import command_lines

pytestmark = pytest.mark.slow
# On the host every command asks.
ASKS = ("--backend", "host")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


async def test_an_answer_and_its_thoughts_are_streamed(user: User, folder: Path) -> None:
    model = user.script(lead_reply("It is a small project.", reasoning="Let me look.", chunks=4))
    async with open_editor(user, "--model", model) as editor:
        session = await editor.open(folder)
        assert await editor.ask(session, "What is this?") == "end_turn"
    assert editor.text() == "It is a small project."
    assert editor.text("agent_thought_chunk") == "Let me look."
    assert len(editor.of_kind("agent_message_chunk")) > 1


async def test_an_edit_is_shown_as_a_diff_with_its_file(user: User, folder: Path) -> None:
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    model = user.script(
        lead_call("edit_file", path="a.txt", old_text="two", new_text="2"),
        lead_reply("Done."),
    )
    async with open_editor(user, "--model", model, "--approval-mode", "auto-edit") as editor:
        await editor.ask(await editor.open(folder), "Use digits.")
    (started,) = editor.of_kind("tool_call")
    assert (started["kind"], started["status"]) == ("edit", "in_progress")
    assert started["locations"] == [{"path": str(folder / "a.txt")}]
    ended = editor.of_kind("tool_call_update")[-1]
    assert ended["status"] == "completed"
    assert ended["content"] == [
        {
            "type": "diff",
            "path": str(folder / "a.txt"),
            "old_text": "one\ntwo\nthree\n",
            "new_text": "one\n2\nthree\n",
        }
    ]


async def test_a_new_file_is_a_diff_without_an_old_text(user: User, folder: Path) -> None:
    model = user.script(lead_call("write_file", path="b.txt", content="hello\n"), lead_reply("Done."))
    async with open_editor(user, "--model", model, "--approval-mode", "auto-edit") as editor:
        await editor.ask(await editor.open(folder), "Write it.")
    content = editor.of_kind("tool_call_update")[-1]["content"]
    assert content == [{"type": "diff", "path": str(folder / "b.txt"), "new_text": "hello\n"}]


async def test_what_a_command_changes_is_shown_below_its_output(user: User, folder: Path) -> None:
    model = user.script(lead_call("run_command", command="echo hello | tee b.txt"), lead_reply("Done."))
    async with open_editor(user, "--model", model) as editor:
        await editor.ask(await editor.open(folder), "Write it.")
    output, diff = editor.of_kind("tool_call_update")[-1]["content"]
    assert output["content"]["text"].strip() == "hello"
    assert diff == {"type": "diff", "path": str(folder / "b.txt"), "new_text": "hello\n"}


async def test_the_plan_and_the_progress_of_its_steps_are_shown(user: User, folder: Path) -> None:
    model = user.script(
        hand_out(step("one"), step("two", "one")),
        step_reply("one", "1"),
        step_reply("two", "2"),
        lead_reply("Both done."),
    )
    async with open_editor(user, "--model", model) as editor:
        await editor.ask(await editor.open(folder), "Do both.")
    plans = [[(e["content"], e["status"]) for e in update["entries"]] for update in editor.of_kind("plan")]
    first, second = "Title of one", "Title of two"
    assert [(first, "in_progress"), (second, "pending")] in plans
    assert [(first, "completed"), (second, "in_progress")] in plans
    assert plans[-1] == [(first, "completed"), (second, "completed")]
    assert editor.text() == "Both done."


async def test_a_call_of_a_step_is_shown_with_the_title_of_the_step(user: User, folder: Path) -> None:
    model = user.script(
        hand_out(step("one")), step_call("one", "list_directory", path="."), step_reply("one", "1"), lead_reply("Done.")
    )
    async with open_editor(user, "--model", model) as editor:
        await editor.ask(await editor.open(folder), "Look.")
    assert "Title of one: list_directory ." in [call["title"] for call in editor.of_kind("tool_call")]


@pytest.mark.parametrize(("chosen", "status"), [("allow_once", "completed"), ("reject", "failed"), ("", "failed")])
async def test_the_user_decides_about_a_command_in_the_editor(
    user: User, folder: Path, chosen: str, status: str
) -> None:
    model = user.script(lead_call("run_command", command="touch made"), lead_reply("Done."))
    editor = Editor(choose=lambda call: chosen)
    async with open_editor(user, "--model", model, *ASKS, editor=editor):
        await editor.ask(await editor.open(folder), "Clean up.")
    ((call, options),) = editor.dialogs
    assert [(option.option_id, option.kind) for option in options] == [
        ("allow_once", "allow_once"),
        ("allow_run", "allow_always"),
        ("reject", "reject_once"),
    ]
    (started,) = editor.of_kind("tool_call")
    assert call.tool_call_id == started["tool_call_id"]
    assert call.title == "touch made"
    statuses = [update["status"] for update in editor.of_kind("tool_call_update") if "status" in update]
    assert statuses[-1] == status
    assert (folder / "made").exists() == (status == "completed")


async def test_allowing_for_the_run_asks_once(user: User, folder: Path) -> None:
    call = lead_call("run_command", command="touch made")
    model = user.script(call, call, lead_reply("Done."))
    editor = Editor(choose=lambda call: "allow_run")
    async with open_editor(user, "--model", model, *ASKS, editor=editor):
        await editor.ask(await editor.open(folder), "Clean up twice.")
    assert len(editor.dialogs) == 1


async def test_an_edit_that_needs_approval_shows_its_diff_in_the_dialog(user: User, folder: Path) -> None:
    model = user.script(lead_call("write_file", path="b.txt", content="hello\n"), lead_reply("Done."))
    async with open_editor(user, "--model", model, "--approval-mode", "ask") as editor:
        await editor.ask(await editor.open(folder), "Write it.")
    ((call, _),) = editor.dialogs
    assert [block.new_text for block in call.content if block.type == "diff"] == ["hello\n"]
    assert (folder / "b.txt").read_text() == "hello\n"


async def test_cancelling_ends_the_turn(user: User, folder: Path) -> None:
    model = user.script(lead_call("run_command", command="sleep 600"), lead_reply("Done."))
    async with open_editor(user, "--model", model, "--approval-mode", "yolo") as editor:
        session = await editor.open(folder)
        asked = asyncio.ensure_future(editor.ask(session, "Wait."))
        await editor.until(lambda: bool(editor.of_kind("tool_call")))
        await editor.connected.cancel(session_id=session)
        assert await asked == "cancelled"
        assert editor.of_kind("tool_call_update")[-1]["status"] == "failed"


async def test_a_dialog_left_open_does_not_keep_a_turn_from_being_cancelled(user: User, folder: Path) -> None:
    model = user.script(lead_call("run_command", command="rm -rf build"), lead_reply("Done."))

    class SlowEditor(Editor):
        async def request_permission(self, *_: object, **__: object) -> object:
            self.dialogs.append(None)
            self.changed.set()
            return await asyncio.Future()

    editor = SlowEditor()
    async with open_editor(user, "--model", model, *ASKS, editor=editor):
        session = await editor.open(folder)
        asked = asyncio.ensure_future(editor.ask(session, "Clean up."))
        await editor.until(lambda: bool(editor.dialogs))
        await editor.connected.cancel(session_id=session)
        assert await asked == "cancelled"


async def test_a_session_continues_its_conversation(user: User, folder: Path) -> None:
    async with open_editor(user, "--model", user.script(lead_reply("Noted."))) as editor:
        session = await editor.open(folder)
        await editor.ask(session, "my name is Ada")
        await editor.ask(session, "who am I?")
    assert editor.text() == "Noted.Noted."
    shown = user.agent("sessions", "show", session).stdout
    assert "my name is Ada" in shown
    assert "who am I?" in shown


async def test_a_stored_session_is_loaded_with_its_conversation(user: User, folder: Path) -> None:
    (folder / "a.txt").write_text("one\n")
    model = user.script(lead_call("read_file", path="a.txt"), lead_reply("It says one."), lead_reply("Still one."))
    async with open_editor(user, "--model", model) as first:
        session = await first.open(folder)
        await first.ask(session, "What does a.txt say?")
    async with open_editor(user, "--model", user.script(lead_reply("Still one."))) as second:
        listed = await second.connected.list_sessions(cwd=str(folder))
        assert [(entry.session_id, entry.title) for entry in listed.sessions] == [(session, "What does a.txt say?")]
        await second.connected.load_session(cwd=str(folder), session_id=session, mcp_servers=[])
        assert second.text("user_message_chunk") == "What does a.txt say?"
        assert second.text() == "It says one."
        assert [call["title"] for call in second.of_kind("tool_call")] == ["read_file a.txt"]
        assert second.of_kind("tool_call_update")[-1]["status"] == "completed"
        second.updates.clear()
        await second.ask(session, "And now?")
        assert second.text() == "Still one."


async def test_an_unknown_session_is_an_error(user: User, folder: Path) -> None:
    async with open_editor(user) as editor:
        for session in ("20200101-000000-abcdef", "../../etc"):
            with pytest.raises(RequestError, match="not found"):
                await editor.connected.load_session(cwd=str(folder), session_id=session, mcp_servers=[])


async def test_a_relative_folder_is_an_error(user: User) -> None:
    async with open_editor(user) as editor:
        with pytest.raises(RequestError, match="Invalid params"):
            await editor.connected.new_session(cwd="project", mcp_servers=[])


async def test_the_mode_of_a_session_can_be_changed(user: User, folder: Path) -> None:
    model = user.script(lead_call("run_command", command="rm -rf build"), lead_reply("Done."))
    async with open_editor(user, "--model", model, *ASKS) as editor:
        opened = await editor.connected.new_session(cwd=str(folder), mcp_servers=[])
        assert opened.modes.current_mode_id == "ask"
        await editor.connected.set_session_mode(session_id=opened.session_id, mode_id="yolo")
        await editor.ask(opened.session_id, "Clean up.")
    assert editor.dialogs == []


async def test_a_question_with_choices_is_a_dialog(user: User, folder: Path) -> None:
    model = user.script(lead_call("ask_user", question="Which color?", options=["red", "blue"]), lead_reply("Done."))
    editor = Editor(choose=lambda call: "blue")
    async with open_editor(user, "--model", model, editor=editor):
        await editor.ask(await editor.open(folder), "Paint it.")
    ((call, options),) = editor.dialogs
    assert call.title == "Which color?"
    assert [option.name for option in options] == ["red", "blue", "None of these"]
    assert "blue" in json.dumps(editor.of_kind("tool_call_update")[-1])


async def test_a_missing_key_is_an_error_that_says_so(user: User, folder: Path) -> None:
    async with open_editor(user, "--model", "openai/gpt-5") as editor:
        session = await editor.open(folder)
        with pytest.raises(RequestError, match="OPENAI_API_KEY") as caught:
            await editor.ask(session, "Hi")
    assert caught.value.code == -32000


async def test_files_and_selections_of_the_editor_reach_the_model(user: User, folder: Path) -> None:
    link = resource_link_block("a.py", (folder / "a.py").as_uri())
    selection = resource_block(embedded_text_resource((folder / "b.py").as_uri(), "x = 1"))
    match = {"purpose": "lead", "contains": "Compare a.py and b.py"}
    model = user.script({"match": match, "text": "They differ."})
    async with open_editor(user, "--model", model) as editor:
        session = await editor.open(folder)
        blocks = [text_block("Compare "), link, text_block(" and "), selection]
        await editor.connected.prompt(session_id=session, prompt=blocks)
    assert editor.text() == "They differ."
    log = (user.data / "sessions" / session / "events.jsonl").read_text()
    assert "b.py:\\nx = 1" in log


async def test_a_pasted_image_is_attached(user: User, folder: Path) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    assert base64.b64decode(pixel)
    image = ImageContentBlock(type="image", data=pixel, mime_type="image/png")
    async with open_editor(user, "--model", user.script(lead_reply("A pixel."))) as editor:
        session = await editor.open(folder)
        await editor.connected.prompt(session_id=session, prompt=[text_block("What is it?"), image])
    log = (user.data / "sessions" / session / "events.jsonl").read_text()
    assert '"media_type": "image/png"' in log or "image/png" in log


def test_stdout_carries_only_the_protocol_and_the_end_of_stdin_ends_the_program(user: User) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
    ended = subprocess.run(
        user.command("acp"),
        input=f"{json.dumps(request)}\nthis is not JSON\n",
        env=user.environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    replies = [json.loads(line) for line in ended.stdout.splitlines()]
    assert replies[0]["result"]["agentInfo"]["name"] == "windlass"
    assert replies[0]["result"]["agentCapabilities"]["loadSession"] is True
    assert ended.returncode == 0


def test_an_editor_that_disappears_ends_the_program_and_its_work(user: User, folder: Path) -> None:
    model = user.script(lead_call("run_command", command="sleep 3333"))
    words = user.command("acp", "--model", model, "--approval-mode", "yolo")
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=user.environment(AGENT_PLANNING="auto"),
        text=True,
    ) as program:
        assert program.stdin and program.stdout

        def send(number: int, method: str, **params: object) -> None:
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            program.stdin.write(f"{json.dumps(request)}\n")
            program.stdin.flush()

        def read_until(found: Callable[[Any], object]) -> object:
            return next(result for line in program.stdout if (result := found(json.loads(line))))

        send(1, "initialize", protocolVersion=1)
        send(2, "session/new", cwd=str(folder), mcpServers=[])
        session = read_until(lambda message: message.get("result", {}).get("sessionId"))
        send(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "wait"}])
        # Started, or ended at once: then the test fails below.
        read_until(lambda message: "sleep 3333" in str(message) or message.get("id") == 3)
        program.stdout.close()
        program.stdin.close()
        assert program.wait(LIMIT_S) == 0
    assert not [line for line in command_lines() if "sleep\x003333" in line]


def test_without_an_editor_it_says_how_it_is_used(user: User) -> None:
    ended = subprocess.run(
        user.command("acp"),
        stdin=subprocess.DEVNULL,
        env=user.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "error: agent acp is started by an editor" in ended.stderr


def test_a_missing_extra_is_named_with_its_install_line(user: User) -> None:
    hidden = "import sys; sys.modules['acp'] = None; from cli.application import run_cli; sys.exit(run_cli(['acp']))"
    ended = subprocess.run(
        [sys.executable, "-c", hidden], env=user.environment(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "pip install 'windlass[acp]'" in ended.stderr


def test_wrong_settings_are_reported_at_once(user: User) -> None:
    ended = subprocess.run(
        user.command("acp", "--approval-mode", "maybe"),
        input="",
        env=user.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "--approval-mode" in ended.stderr
