"""Completion while commands are still being loaded."""

from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from cli.repl.slash_commands import Candidate, SlashCommand
from cli.repl.ui.completion import BackgroundCompleter, FileIndex, ReplCompleter


def command(name: str) -> SlashCommand:
    return SlashCommand(name=name, help=name, run=lambda repl, argument: None)


async def test_commands_that_arrive_during_a_completion_are_offered(tmp_path: Path) -> None:
    known = [(command("review"),), (command("review"), command("remember"))]

    def commands() -> tuple[SlashCommand, ...]:
        return known[0]

    def arguments(command: SlashCommand, words: Sequence[str]) -> list[Candidate]:
        return []

    class SlowCompleter(ReplCompleter):
        def get_completions(self, document: Document, complete_event: CompleteEvent):  # type: ignore[no-untyped-def]
            found = list(super().get_completions(document, complete_event))
            if len(known) > 1:
                known.pop(0)
            return found

    slow = SlowCompleter(commands=commands, arguments=arguments, files=FileIndex(tmp_path, {}))
    completer = BackgroundCompleter(slow, commands)
    found = [each.text async for each in completer.get_completions_async(Document("/re"), CompleteEvent())]
    assert found == ["/review", "/remember"]
