"""A list to choose from: arrow keys move, typing filters, Enter chooses, Esc cancels."""

import time
from collections.abc import Callable, Sequence

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from rich.cells import cell_len

from cli.repl.fuzzy import filter_candidates
from cli.repl.slash_commands import Candidate
from cli.screen.colors import Paint, clip, to_single_line

_MAX_ROWS = 10
_MARK, _NO_MARK, _GAP = "→ ", "  ", "  "
_LABEL_SHARE = 0.7
KEYS = "  type to filter, Enter selects, Esc cancels"
NO_MATCH = "nothing matches"


class Picker:
    """Shows candidates above the prompt, whose text filters them; the draft is restored afterwards."""

    def __init__(
        self,
        *,
        buffer: Buffer,
        paint: Paint,
        refresh: Callable[[], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._buffer = buffer
        self._now = now
        self._ready_at = 0.0
        self._paint = paint
        self._refresh = refresh
        self._title = ""
        self._candidates: Sequence[Candidate] = ()
        self._matches: list[Candidate] = []
        self._index = 0
        self._draft = Document()
        self._on_done: Callable[[str | None], None] | None = None
        buffer.on_text_changed += lambda _: self._filter()

    @property
    def is_open(self) -> bool:
        return self._on_done is not None

    def open(
        self,
        title: str,
        candidates: Sequence[Candidate],
        on_done: Callable[[str | None], None],
        *,
        min_seen_s: float = 0.0,
    ) -> None:
        """Show candidates, each with a description; `on_done` receives the chosen one, or None.

        Enter does not choose before the list was open for `min_seen_s`.
        """
        self.cancel()
        self._ready_at = self._now() + min_seen_s
        self._title, self._candidates, self._on_done = title, candidates, on_done
        self._draft = self._buffer.document
        self._buffer.reset()
        self._filter()

    def move(self, rows: int) -> None:
        """Move the mark by a number of rows, wrapping around."""
        if self._matches:
            wraps = abs(rows) == 1
            index = self._index + rows
            self._index = index % len(self._matches) if wraps else min(max(index, 0), len(self._matches) - 1)
            self._refresh()

    def choose(self) -> None:
        """Choose the marked candidate; without any match, or too early, nothing happens."""
        if self._matches and self._now() >= self._ready_at:
            self._close(self._matches[self._index][0])

    def cancel(self) -> bool:
        """Close the list without a choice; return False if it is not open."""
        if not self.is_open:
            return False
        self._close(None)
        return True

    def lines(self, width: int, height: int) -> list[str]:
        """Return the title and the candidates around the mark."""
        if not self.is_open or height < 1:
            return []
        rows = min(_MAX_ROWS, max(1, height - 1))
        first = max(0, min(self._index - rows // 2, len(self._matches) - rows))
        title = f"{self._title} ({len(self._matches)} of {len(self._candidates)})"
        keys = KEYS if cell_len(title) + len(KEYS) <= width else ""
        lines = [self._paint("strong", clip(title, width)) + self._paint("quiet", keys)]
        for number, candidate in enumerate(self._matches[first : first + rows], first):
            lines.append(self._line(candidate, width, is_marked=number == self._index))
        return [*lines, *([] if self._matches else [self._paint("quiet", f"{_NO_MARK}{NO_MATCH}")])][:height]

    def _line(self, candidate: Candidate, width: int, *, is_marked: bool) -> str:
        label, detail = (to_single_line(part) for part in candidate)
        room = width - len(_MARK)
        label = clip(label, int(room * _LABEL_SHARE) if detail else room)
        more = clip(detail, room - cell_len(label) - len(_GAP))
        head = self._paint("accent", f"{_MARK}{label}") if is_marked else f"{_NO_MARK}{label}"
        return head + (f"{_GAP}{self._paint('quiet', more)}" if more else "")

    def _filter(self) -> None:
        if self.is_open:
            self._matches = filter_candidates(self._candidates, self._buffer.text)
            self._index = 0
            self._refresh()

    def _close(self, chosen: str | None) -> None:
        on_done, self._on_done = self._on_done, None
        self._buffer.set_document(self._draft)
        self._draft = Document()
        self._refresh()
        if on_done:
            on_done(chosen)
