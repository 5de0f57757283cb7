"""Lines on a terminal nobody types on: finished ones stay in order, live ones leave no trace."""

import asyncio

import pyte

from cli.screen.live_screen import LiveScreen


class ScreenHarness:
    """A terminal of some size, and a screen that draws on it."""

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


async def test_finished_lines_stay_above_live_ones_which_leave_no_trace() -> None:
    wall = ScreenHarness()
    wall.lines = ["live 1", "live 2"]
    for number in range(30):
        wall.screen.print(f"finished {number}")
        if number % 10 == 0:
            await frames()
    wall.screen.close()
    assert wall.visible_lines() == [f"finished {number}" for number in range(30)]


async def test_what_does_not_change_is_not_written_again() -> None:
    wall = ScreenHarness()
    wall.lines = ["live 1", "live 2"]
    wall.screen.refresh()
    await frames(3)
    before = len(wall.written)
    await frames(3)
    assert len(wall.written) == before
    wall.lines = ["live 1", "changed"]
    await frames(2)
    assert "changed" in wall.written[-1] and "live 1" not in wall.written[-1]
    assert wall.visible_lines() == ["live 1", "changed"]


async def test_a_window_of_another_size_leaves_no_stale_lines() -> None:
    wall = ScreenHarness()
    wall.lines = ["live 1 " + "x" * 30, "live 2"]
    wall.screen.print("finished")
    await frames(2)
    wall.terminal.resize(12, 20)
    await frames(2)
    wall.screen.close()
    assert wall.visible_lines() == ["finished"]


async def test_somebody_else_may_write_while_it_is_held() -> None:
    wall = ScreenHarness()
    wall.lines = ["live"]
    wall.screen.print("first")
    await frames(2)
    wall.screen.pause()
    wall._write("a question\n")
    wall.screen.print("second")
    await frames(2)
    assert wall.visible_lines() == ["first", "a question"]
    wall.screen.resume()
    await frames(2)
    assert wall.visible_lines() == ["first", "a question", "second", "live"]
