"""Prompts of MCP servers as slash commands: the typed words become arguments."""

import pytest

from agent.vocabulary.errors import UsageError
from cli.repl.commands.mcp_prompts import assign_words
from tooling.mcp.listing import PromptArgument

TOPIC = PromptArgument(name="topic", is_required=True)
TONE = PromptArgument(name="tone")


@pytest.mark.parametrize(
    ("arguments", "words", "expected"),
    [
        ((), (), {}),
        ((TOPIC,), ("green", "tea"), {"topic": "green tea"}),
        ((TOPIC, TONE), ("tea",), {"topic": "tea"}),
        ((TOPIC, TONE), ("tea", "very", "kind"), {"topic": "tea", "tone": "very kind"}),
    ],
)
def test_the_last_argument_gets_the_rest_of_the_words(
    arguments: tuple[PromptArgument, ...], words: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert assign_words(arguments, words) == expected


@pytest.mark.parametrize(("arguments", "words"), [((), ("tea",)), ((TOPIC,), ())])
def test_wrong_words_are_refused(arguments: tuple[PromptArgument, ...], words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        assign_words(arguments, words)
