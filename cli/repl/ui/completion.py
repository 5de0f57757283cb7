"""Completion: `/command` with its help, the arguments of a command, `@path` anywhere."""

import re
from collections.abc import Callable, Iterable, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from cli.repl.file_names import FileNames
from cli.repl.slash_commands import Candidate, SlashCommand
from cli.screen.colors import shown

_PATH = re.compile(r"(?:^|(?<=\s))@(\S*)$")
_SHOWN = 50


class ReplCompleter(Completer):
    """Offers what can stand at the cursor."""

    def __init__(
        self,
        *,
        commands: Callable[[], Sequence[SlashCommand]],
        arguments: Callable[[SlashCommand, Sequence[str]], Iterable[Candidate]],
        files: FileNames,
    ) -> None:
        self._commands = commands
        self._arguments = arguments
        self._files = files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return what fits the text before the cursor."""
        text = document.text_before_cursor
        if found := _PATH.search(text):
            return self._paths(found[1])
        if text.startswith("/") and "\n" not in text:
            return self._slash(text)
        return ()

    def _slash(self, text: str) -> Iterable[Completion]:
        name, has_argument, argument = text[1:].partition(" ")
        commands = self._commands()
        if not has_argument:
            return [
                Completion(f"/{command.name}", start_position=-len(text), display_meta=command.help)
                for command in commands
                if command.name.startswith(name)
            ]
        command = next((command for command in commands if command.name == name), None)
        if command is None:
            return ()
        *before, word = argument.split(" ")
        fitting = [
            Completion(candidate, start_position=-len(word), display_meta=shown(about))
            for candidate, about in self._arguments(command, [*filter(None, before), word])
            if candidate.startswith(word)
        ]
        return fitting[:_SHOWN]

    def _paths(self, wanted: str) -> Iterable[Completion]:
        return [
            Completion(f"@{name}", start_position=-len(wanted) - 1, display=shown(name))
            for name in self._files.matching(wanted, _SHOWN)
        ]
