"""Completion of slash commands, their arguments, and `@path`."""

import os
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document

from agent.vocabulary.errors import AgentError
from agent.workspace.git_command import find_program, find_repository, run_git
from cli.repl.fuzzy import fuzzy_span
from cli.repl.mentions import mention, mention_at_cursor
from cli.repl.slash_commands import Candidate, SlashCommand
from cli.screen.colors import to_single_line

_MAX_AGE_S = 5.0
_MAX_FILES = 200_000
_LIST_TIMEOUT_S = 10.0
_LS_FILES = ("ls-files", "--cached", "--others", "--exclude-standard", "-z")
_RG_FILES = ("--no-config", "--files", "--hidden", "--glob", "!.git", "--null")


class FileIndex:
    """Files and folders below a folder, refreshed in the background; only the first lookup waits for the disk."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = environ
        self._names: tuple[str, ...] = ()
        self._read_at = float("-inf")
        self._reader: threading.Thread | None = None

    def names(self) -> tuple[str, ...]:
        """Return the known names; start a refresh if they are stale."""
        if time.monotonic() - self._read_at > _MAX_AGE_S and (self._reader is None or not self._reader.is_alive()):
            self._reader = threading.Thread(target=self._read, daemon=True, name="file-names")
            self._reader.start()
        if self._reader and self._read_at == float("-inf"):
            self._reader.join(_LIST_TIMEOUT_S)
        return self._names

    def find(self, query: str, limit: int) -> list[str]:
        """Return matches: paths with this prefix, file names with it, paths that contain it, fuzzy matches."""
        low = query.lower()
        span = fuzzy_span(low)
        groups: tuple[list[str], ...] = ([], [], [], [])
        for name in self.names():
            lower = name.lower()
            if low not in lower:
                if span(lower):
                    groups[3].append(name)
                continue
            base = lower.rstrip("/").rpartition("/")[2]
            groups[0 if lower.startswith(low) else 1 if base.startswith(low) else 2].append(name)
            if len(groups[0]) >= limit:
                break
        return [*groups[0], *groups[1], *groups[2], *sorted(groups[3], key=len)][:limit]

    def _read(self) -> None:
        listed = self._list_with_git()
        if listed is None:
            listed = self._list_with_rg()
        files = tuple(_walk(self._folder) if listed is None else map(os.fsdecode, listed.split(b"\0")[:_MAX_FILES]))
        self._names = (*filter(None, files), *_folders_of(files))
        self._read_at = time.monotonic()

    def _list_with_git(self) -> bytes | None:
        try:
            repository = find_repository(self._folder)
            if repository is None:
                return None
            below = str(self._folder.relative_to(repository.root))
            listed = run_git(repository, self._environ, "-C", below, *_LS_FILES, limit_s=_LIST_TIMEOUT_S)
        except (OSError, AgentError):
            return None
        return listed

    def _list_with_rg(self) -> bytes | None:
        program = find_program("rg", self._environ, self._folder)
        if program is None:
            return None
        try:
            finished = subprocess.run(
                (program, *_RG_FILES),
                cwd=self._folder,
                capture_output=True,
                timeout=_LIST_TIMEOUT_S,
                check=False,
                stdin=subprocess.DEVNULL,
                env=self._environ,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return finished.stdout if finished.returncode == 0 else None


def _folders_of(files: Iterable[str]) -> list[str]:
    """Return all folders that contain the files, each with a slash at its end."""
    known: set[str] = set()
    for name in files:
        folder = name.rpartition("/")[0]
        while folder and folder not in known:
            known.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(f"{folder}/" for folder in known)


def _walk(folder: Path) -> Iterator[str]:
    count = 0
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            yield str((Path(root) / name).relative_to(folder))
            count += 1
            if count >= _MAX_FILES:
                return


_MAX_SHOWN = 50


class ReplCompleter(Completer):
    """Completes commands, arguments and paths at the cursor."""

    def __init__(
        self,
        *,
        commands: Callable[[], Sequence[SlashCommand]],
        arguments: Callable[[SlashCommand, Sequence[str]], Iterable[Candidate]],
        files: FileIndex,
        words: Callable[[str], Iterable[Candidate]] = lambda word: (),
    ) -> None:
        self._words = words
        self._commands = commands
        self._arguments = arguments
        self._files = files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if typed := mention_at_cursor(text):
            return self._paths(*typed)
        if text.startswith("/") and "\n" not in text:
            return self._slash(text)
        word = text.split()[-1] if text[-1:].strip() else ""
        return [
            Completion(candidate, start_position=-len(word), display_meta=to_single_line(description))
            for candidate, description in (self._words(word) if word else ())
        ][:_MAX_SHOWN]

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
        matches = [
            Completion(candidate, start_position=-len(word), display_meta=to_single_line(description))
            for candidate, description in self._arguments(command, [*filter(None, before), word])
            if candidate.startswith(word)
        ]
        return matches[:_MAX_SHOWN]

    def _paths(self, query: str, length: int) -> Iterable[Completion]:
        return [
            Completion(mention(name), start_position=-length, display=to_single_line(name))
            for name in self._files.find(query, _MAX_SHOWN)
        ]


class BackgroundCompleter(ThreadedCompleter):
    """Runs a completer in a thread, and again if commands were added meanwhile."""

    def __init__(self, completer: ReplCompleter, commands: Callable[[], Sequence[SlashCommand]]) -> None:
        super().__init__(completer)
        self._known_commands = commands
        self._is_running = False

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        self._is_running = True
        try:
            found: list[Completion] = []
            commands: Sequence[SlashCommand] | None = None
            while commands is not self._known_commands():
                commands = self._known_commands()
                found = [each async for each in super().get_completions_async(document, complete_event)]
        finally:
            self._is_running = False
        for completion in found:
            yield completion

    def refresh(self, buffer: Buffer) -> None:
        """Offer newly added commands if a command is being typed and none is chosen yet."""
        chosen = buffer.complete_state and buffer.complete_state.current_completion
        if buffer.text.startswith("/") and not chosen and not self._is_running:
            # A visible list would be kept.
            buffer.complete_state = None
            buffer.start_completion()
