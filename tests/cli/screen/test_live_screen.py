"""A live screen: finished lines stay in order, live lines leave no trace."""

import asyncio

import pyte

from cli.screen.live_screen import LiveScreen


class ScreenHarness:
    """A live screen that draws on a terminal emulator."""

    def __init__(self, columns: int = 40, rows: int = 10) -> None:
        self.terminal = pyte.HistoryScreen(columns, rows, history=1000)
        self._stream = pyte.Stream(self.terminal)
        self.written: list[str] = []
        self.lines: list[str] = []
        self.screen = LiveScreen(
            write=self._write, live=self._live, size=lambda: (self.terminal.columns, self.terminal.lines)
        )

    def visible_lines(self) -> list[str]:
        above = ["".join(line[at].data for at in range(self.terminal.columns)) for line in self.terminal.history.top]
        return [line.rstrip() for line in [*above, *self.terminal.display] if line.strip()]

    def _live(self, columns: int, rows: int) -> list[str]:
        return [line[:columns] for line in self.lines[:rows]]

    def _write(self, text: str) -> None:
        self.written.append(text)
        self._stream.feed(text.replace("\r\n", "\n").replace("\n", "\r\n"))


async def frames(count: int = 1) -> None:
    await asyncio.sleep(0.105 * count)


async def test_finished_lines_stay_and_live_lines_leave_no_trace() -> None:
    harness = ScreenHarness()
    harness.lines = ["live 1", "live 2"]
    for number in range(30):
        harness.screen.print(f"finished {number}")
        if number % 10 == 0:
            await frames()
    harness.screen.close()
    assert harness.visible_lines() == [f"finished {number}" for number in range(30)]


async def test_unchanged_lines_are_not_written_again() -> None:
    harness = ScreenHarness()
    harness.lines = ["live 1", "live 2"]
    harness.screen.refresh()
    await frames(3)
    before = len(harness.written)
    await frames(3)
    assert len(harness.written) == before
    harness.lines = ["live 1", "changed"]
    await frames(2)
    assert "changed" in harness.written[-1] and "live 1" not in harness.written[-1]
    assert harness.visible_lines() == ["live 1", "changed"]


async def test_resizing_the_window_leaves_no_stale_lines() -> None:
    harness = ScreenHarness()
    harness.lines = ["live 1 " + "x" * 30, "live 2"]
    harness.screen.print("finished")
    await frames(2)
    harness.terminal.resize(12, 20)
    await frames(2)
    harness.screen.close()
    assert harness.visible_lines() == ["finished"]


async def test_a_paused_screen_leaves_the_terminal_to_others() -> None:
    harness = ScreenHarness()
    harness.lines = ["live"]
    harness.screen.print("first")
    await frames(2)
    harness.screen.pause()
    harness._write("a question\n")
    harness.screen.print("second")
    await frames(2)
    assert harness.visible_lines() == ["first", "a question"]
    harness.screen.resume()
    await frames(2)
    assert harness.visible_lines() == ["first", "a question", "second", "live"]


async def test_lines_for_another_stream_keep_their_place() -> None:
    written: list[tuple[str, str]] = []
    screen = LiveScreen(
        write=lambda text: written.append(("stderr", text)), live=lambda _, __: ["live"], size=lambda: (80, 24)
    )
    screen.print("before")
    screen.pause()
    screen.print("the answer", lambda text: written.append(("stdout", text)))
    screen.print("after")
    assert [where for where, _ in written] == ["stderr"]
    screen.close()
    assert [
        (where, "".join(word for word in ("before", "the answer", "after") if word in text)) for where, text in written
    ] == [
        ("stderr", "before"),
        ("stdout", "the answer"),
        ("stderr", "after"),
    ]
