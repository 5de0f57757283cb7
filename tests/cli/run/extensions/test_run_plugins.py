"""Plugins in `agent run` and `agent tools call`: tools, services, hooks, models, search, and broken ones."""

import json

import pytest

from tests.cli.plugin_files import write_plugin
from tests.cli.terminal_user import ProgramResult, User, lead_call, lead_reply

pytestmark = pytest.mark.slow


def run(user: User, *words: str, model: str) -> ProgramResult:
    arguments = ("run", "hello", "--model", model, "--output-format", "stream-json", "--session", "one", "-C", ".")
    return user.agent(*arguments, *words, AGENT_PLANNING="auto")


def tool_output(ended: ProgramResult) -> str:
    return "\n".join(str(event["output"]) for event in ended.events if event["type"] == "tool.completed")


def test_the_model_calls_a_plugins_tool_and_its_hooks_are_called(user: User) -> None:
    write_plugin(user)
    (user.home / ".config/agent/config.toml").write_text('[plugins.notes]\nlimit = 3\n[plugins.notes.deep]\na = "b"\n')
    tasks = lead_call("manage_tasks", action="add", tasks=[{"content": "write it"}])
    model = user.script(tasks, lead_call("add_note", text="milk"), lead_reply("done"), lead_reply("again"))
    ended = run(user, model=model)
    assert ended.exit_code == 0, ended.stderr
    assert "kept milk for lead in private\nprinted by the tool" in tool_output(ended)
    assert (user.home / "hooked").read_text() == "2 add_note"
    # The second run of the session sees the first one.
    assert run(user, model=model).exit_code == 0
    seen = json.loads((user.data / "plugins/notes/seen.json").read_text())
    assert seen["config"] == {"limit": 3, "deep": {"a": "b"}}
    assert (seen["session"], seen["cwd"], seen["tasks"]) == ("one", str(user.home), ["write it"])
    assert "done" in seen["messages"]
    assert (user.data / "plugins/notes/closed").exists()


def test_a_plugin_brings_a_model_of_its_own(user: User) -> None:
    write_plugin(user)
    ended = user.agent("run", "say this", "--model", "echo/any", "--ephemeral", AGENT_PLANNING="never")
    assert (ended.exit_code, ended.stdout) == (0, "echo: say this\n"), ended.stderr


def test_a_plugin_brings_a_search_provider(user: User) -> None:
    write_plugin(user)
    ended = user.agent("tools", "call", "search_web", "query=tea", "--allow", "search_web")
    assert (ended.exit_code, "About tea" in ended.stdout, "search by notes" in ended.stdout) == (0, True, True)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
        (
            "from agent.plugins.plugin import Plugin\nclass P(Plugin):\n"
            "    async def initialize(self, services): raise OSError('no server')",
            "OSError: no server",
        ),
    ],
)
def test_a_broken_plugin_is_named_and_the_run_continues(user: User, source: str, reason: str) -> None:
    write_plugin(user, "broken", source)
    ended = run(user, model=user.script(lead_reply("fine")))
    warnings = ended.events[0]["warnings"]
    assert ended.exit_code == 0
    assert warnings == [f"skipped plugin broken ({user.home}/.config/agent/plugins/broken): {reason}"]


def test_a_plugin_that_prints_keeps_stdout_clean(user: User) -> None:
    write_plugin(user, "loud", "print('noise')\n" + "from agent.plugins.plugin import Plugin\nclass P(Plugin): pass\n")
    ended = user.agent("run", "hi", "--model", user.script(lead_reply("fine")), AGENT_PLANNING="auto")
    assert (ended.exit_code, ended.stdout) == (0, "fine\n")
    assert "plugin loud" in ended.stderr and "noise" in ended.stderr


def test_plugins_are_never_loaded_from_a_workspace(user: User) -> None:
    for folder in ("plugins/evil", ".agent/plugins/evil", ".config/plugins/evil"):
        (user.home / "work" / folder).mkdir(parents=True)
        (user.home / "work" / folder / "plugin.py").write_text("open('/tmp/evil-was-here', 'w')\nraise RuntimeError")
    ended = user.agent("plugins", "list", cwd=user.home / "work")
    assert (ended.exit_code, ended.stdout) == (0, "(no plugins)\n")


def test_a_tool_without_a_declared_effect_needs_approval(user: User) -> None:
    start = "from tooling.contract.function_tool import tool\n@tool\n"
    source = f'{start}async def poke(x: int) -> int:\n    """Poke."""\n    return x'
    write_plugin(user, "poker", source)
    refused = user.agent("tools", "call", "poke", "x=3")
    assert (refused.exit_code, "poke always needs approval" in refused.stderr) == (57, True)
    assert user.agent("tools", "call", "poke", "x=3", "--allow", "poke").stdout == "3\n"


@pytest.mark.parametrize("name", ["plugins/evil/plugin.py", "skills/evil/SKILL.md", "commands/x.md"])
def test_no_tool_writes_what_becomes_code_or_instructions_of_windlass(user: User, name: str) -> None:
    (user.home / ".config/agent").mkdir(parents=True)
    (user.home / "link").symlink_to(user.home / ".config")
    for path in (f".config/agent/{name}", f"link/agent/{name}"):
        ended = user.agent(
            "tools", "call", "write_file", f"path={path}", "content=x", "--approval-mode", "yolo", "-C", str(user.home)
        )
        assert (ended.exit_code, "BLOCKED" in ended.stderr) == (57, True)
    assert not (user.home / ".config/agent" / name).exists()
