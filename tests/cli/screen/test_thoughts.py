"""Thoughts are shown while they stream, and folded into one line when they end."""

from agent.protocol.events import Event, MessageAdded, StepStarted, ToolStarted
from cli.screen.colors import Paint
from cli.screen.live_area import THINKING, LiveArea
from cli.screen.transcript import Transcript
from tests.cli.screen.hostile import HOSTILE, find_foreign
from tests.cli.screen.test_live_area import STARTED, envelope

CALL = ToolStarted(tool_id="1", name="read_file", input={"path": "a.txt"})


def thought(text: str) -> MessageAdded:
    return MessageAdded(role="thought", content=text, delta=True)


def said(text: str) -> MessageAdded:
    return MessageAdded(role="assistant", content=text, delta=True)


class Screen:
    """A transcript and a live area with a clock set by hand."""

    def __init__(self) -> None:
        self.time = 0.0
        self.written: list[str] = []
        paint = Paint(has_color=False)
        self.live = LiveArea(paint=paint, now=lambda: self.time)
        self.transcript = Transcript(
            write=self.written.append,
            width=lambda: 60,
            paint=paint,
            markdown=lambda text: text.strip() + "\n",
            expand_hint=" (Ctrl-O)",
            now=lambda: self.time,
        )
        self.show(STARTED)

    def show(self, event: Event, step: str | None = None, *, at: float = 0.0) -> None:
        self.time = at
        self.live.on_event(envelope(event, step))
        self.transcript.on_event(envelope(event, step))


def test_the_end_of_a_thought_is_live_in_a_few_lines() -> None:
    screen = Screen()
    screen.show(StepStarted(title="Look"), "a")
    screen.show(thought("First I look. " * 20), "a")
    screen.show(thought("Then I\nwrite."), "a", at=2.0)
    lines = screen.live.lines(40, 10)
    assert len(lines) == 5
    assert lines[0].endswith(f"│ {THINKING}")
    assert all(line.startswith("    ") and len(line) <= 40 for line in lines[1:4])
    assert lines[3].endswith("Then I write.")
    assert screen.written == []


def test_a_small_window_has_room_for_the_steps_first() -> None:
    screen = Screen()
    screen.show(StepStarted(title="Look"), "a")
    screen.show(thought("one two three " * 20), "a")
    assert [len(screen.live.lines(40, height)) for height in (1, 2, 3, 4, 5, 9)] == [1, 2, 3, 4, 5, 5]


def test_a_finished_thought_is_one_line_and_can_be_unfolded() -> None:
    screen = Screen()
    screen.show(StepStarted(title="Look"), "a")
    screen.show(thought("First I look."), "a")
    screen.show(said("So I do."), "a", at=3.2)
    assert screen.written == ["\n  a: thought for 3.2s (Ctrl-O)\n"]
    assert [(folded.title, folded.text) for folded in screen.transcript.folded] == [
        ("a: thought for 3.2s", "First I look.")
    ]
    assert not any("First" in line for line in screen.live.lines(60, 10))


def test_a_short_thought_leaves_no_line() -> None:
    screen = Screen()
    screen.show(thought("Hm."), "a")
    screen.show(CALL, "a", at=0.4)
    assert screen.written == []


def test_thoughts_of_parallel_steps_end_on_their_own() -> None:
    screen = Screen()
    screen.show(thought("one"), "a")
    screen.show(thought("two"), "b", at=1.0)
    screen.show(CALL, "a", at=4.0)
    assert screen.written == ["\n  a: thought for 4.0s (Ctrl-O)\n"]
    assert [line.strip() for line in screen.live.lines(40, 5)][:1] == ["two"]


def test_a_thought_cannot_control_the_terminal() -> None:
    screen = Screen()
    screen.show(thought(HOSTILE), "a")
    assert find_foreign("\n".join(screen.live.lines(60, 10)).encode()) == []
    screen.show(CALL, "a", at=2.0)
    assert find_foreign(("".join(screen.written) + screen.transcript.folded[0].text).encode()) == []
