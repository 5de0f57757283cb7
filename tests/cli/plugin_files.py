"""A plugin that adds one of everything, for the tests of runs and of the prompt."""

from tests.cli.terminal_user import User

NOTES = '''
import json
from collections.abc import Sequence
from pathlib import Path

from agent.hooks.hook import Hook
from agent.model.port import ModelReply, TextDelta
from agent.plugins.plugin import MenuAction, Plugin, PluginCommand
from agent.vocabulary.message import Message
from agent.vocabulary.usage import Usage
from tooling.contract.context import ExecCtx
from tooling.contract.function_tool import tool
from tooling.web.search.types import SearchHit


@tool(effect="note")
async def add_note(text: str, ctx: ExecCtx) -> str:
    """Keep a note.

    Args:
        text: what to keep
    """
    print("printed by the tool")
    return f"kept {text} for {ctx.step_id} in {ctx.chat_type}"


class Echo:
    """A model that answers with the request."""

    async def stream(self, request):
        text = "echo: " + request.messages[-1].content.splitlines()[-1]
        yield TextDelta(text=text)
        usage = Usage(input_tokens=1, output_tokens=1)
        yield ModelReply(message=Message(role="assistant", content=text), usage=usage, model=request.model)

    async def close(self):
        pass


class Recorder(Hook):
    async def on_tool_call(self, turn, tool_name, tool_input, tool_output):
        Path("hooked").write_text(f"{turn} {tool_name}")


async def search(query: str, count: int) -> Sequence[SearchHit]:
    return [SearchHit(title=f"About {query}", url="https://example.org/found", snippet="from the plugin")]


class Notes(Plugin):
    tools = (add_note,)
    hooks = (Recorder(),)
    models = {"echo": Echo}
    search = {"notes": search}
    menu_label = "Notes"

    def __init__(self):
        self.commands = (
            PluginCommand(name="remember", help="Keep a note in two steps.", run=self.remember, usage="[TITLE]",
                          complete=lambda typed: [("shopping", "a list")]),
            PluginCommand(name="note", help="Only with the tool.", run=self.remember, tools=("add_note",)),
        )
        self.menu = (MenuAction(label="Show the place", run=self.show),)

    async def initialize(self, services):
        self.services = services
        (services.folder() / "seen.json").write_text(json.dumps({
            "config": dict(services.config), "session": services.session.id, "cwd": str(services.session.cwd),
            "messages": [message.content for message in services.recent_messages()],
            "tasks": [item.content for item in services.tasks()],
            "pending": list(services.questions.pending),
        }))

    async def close(self):
        (self.services.folder() / "closed").touch()

    async def remember(self, prompt, argument):
        title = argument or await prompt.ask("Which title?")
        text = await prompt.ask(f"The text of {title}?")
        prompt.print_line(f"remembered {title}: {text}")

    async def show(self, prompt, argument):
        prompt.print_line(f"works in {self.services.session.cwd.name}")

    async def on_input(self, prompt, text):
        if text == "ping":
            prompt.print_line("pong from the plugin")
            return None
        return text.replace("TODAY", "Tuesday")

    def complete(self, text):
        return [("tomorrow", "the next day")] if text.startswith("tom") else []
'''


def write_plugin(user: User, name: str = "notes", source: str = NOTES) -> None:
    folder = user.home / ".config/agent/plugins" / name
    folder.mkdir(parents=True)
    (folder / "plugin.py").write_text(source)
