"""Template of a new plugin: a tool, a slash command, and a passing test."""

from pathlib import Path

from agent.plugins.load import is_plugin_name
from agent.vocabulary.errors import InputError

_PLUGIN = '''"""{name}: a plugin for Windlass."""

from agent.plugins.plugin import Plugin, PluginCommand, PluginPrompt, PluginServices
from tooling.contract.function_tool import tool


@tool(effect="note")
async def {tool}(text: str) -> str:
    """Count the words of a text.

    Args:
        text: the text to count
    """
    return f"{{len(text.split())}} words"


class {title}(Plugin):
    tools = ({tool},)

    def __init__(self) -> None:
        self.commands = (
            PluginCommand(name="{command}", usage="[TEXT]", help="Count the words of a text.", run=self.count),
        )

    async def initialize(self, services: PluginServices) -> None:
        # services.config is the table [plugins.{name}] of your settings file.
        self.unit = services.config.get("unit", "words")

    async def count(self, prompt: PluginPrompt, argument: str) -> None:
        text = argument or await prompt.ask("Which text?")
        prompt.print_line(f"{{len(text.split())}} {{self.unit}}")
'''
_TEST = '''"""Run with: {python} -m unittest discover {folder}"""

import unittest

from plugin import {tool}


class {title}Test(unittest.IsolatedAsyncioTestCase):
    async def test_words_are_counted(self) -> None:
        self.assertEqual(await {tool}.function("one two three"), "3 words")

    def test_the_model_sees_the_argument(self) -> None:
        self.assertEqual(list({tool}.spec.parameters["properties"]), ["text"])


if __name__ == "__main__":
    unittest.main()
'''


def create_plugin(folder: Path, name: str, python: str) -> Path:
    """Write a new plugin and return its folder. Raises InputError if the name is taken or invalid."""
    if not is_plugin_name(name):
        raise InputError(f"{name!r} is not a plugin's name", "use letters, digits, '-' and '_'")
    target = folder / name
    if target.exists():
        raise InputError(f"{target} already exists")
    word = name.replace("-", "_").lower()
    fields = {
        "name": name,
        "tool": f"{word}_count" if word[0].isalpha() else f"count_{word}",
        "command": name.lower(),
        "title": "".join(part.capitalize() for part in f"plugin_{word}".split("_") if part),
        "python": python,
        "folder": target,
    }
    target.mkdir(mode=0o700, parents=True)
    for file, text in (("plugin.py", _PLUGIN), ("test_plugin.py", _TEST)):
        (target / file).write_text(text.format(**fields), "utf-8")
    return target
