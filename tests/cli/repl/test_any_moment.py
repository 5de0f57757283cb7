"""Ctrl-C at any moment, in any order and after any pause: a usable prompt within a second, and no process left."""

import os
import random
import termios
import time
from collections.abc import Callable

import pytest

from tests.cli.repl.terminal_session import ENTER, Seat, all_gone, ctrl, processes_below, words_of
from tests.cli.repl.test_conversation import events, to
from tests.cli.repl.test_endings import AGAIN, RESTORED, is_usable, result_of
from tests.cli.repl.test_remembering import decides
from tests.cli.terminal_user import answer, calls, composes, plan, says, step

pytestmark = pytest.mark.slow
Open = Callable[..., Seat]
Sign = Callable[[Seat], bool]
Script = tuple[dict[str, object], ...]
LONG_MS = 20_000
# A second, and what a machine that is busy with other tests may add to it.
SOON_S = 2.0
STUBBORN = "trap '' INT TERM HUP QUIT; echo on; while :; do sleep 61; done"


def window(text: str) -> Sign:
    return lambda seat: text in seat.window()


def running(command: str) -> Sign:
    return lambda seat: any(command in words_of(pid) for pid in processes_below(seat.child.pid))


def planned(request: str, *steps: dict[str, object]) -> dict[str, object]:
    return to(request, plan(*steps))


# By the request that leads there: how the model behaves, and the sign that it has come so far.
MOMENTS: dict[str, tuple[Script, Sign]] = {
    "plan": (({**planned("plan", step("a1")), "delay_ms": LONG_MS},), window("planning")),
    "plan aloud": (
        ({**planned("plan aloud", step("a2")), "chunks": 40, "chunk_delay_ms": 500},),
        window("planning"),
    ),
    "think": ((planned("think", step("a3")), says("a3", "x", delay_ms=LONG_MS)), window("a3 Title")),
    "talk": (
        (planned("talk", step("a4")), says("a4", "word " * 200, chunks=200, chunk_delay_ms=100)),
        window("word word"),
    ),
    "work": (
        (planned("work", step("a5")), calls("a5", "run_command", command="sleep 62 & sleep 63")),
        running("sleep 63"),
    ),
    "defy": ((planned("defy", step("a6")), calls("a6", "run_command", command=STUBBORN)), running("sleep 61")),
    "push": ((planned("push", step("a7")), calls("a7", "run_command", command="git push")), window("[n] no")),
    "wonder": (
        (planned("wonder", {"id": "a8", "type": "ask_user", "title": "Ask", "ask_question": "Which?"}),),
        window("type a number"),
    ),
    "revise": (
        (
            planned("revise", step("a9"), step("b9", "a9")),
            says("a9", "It differs.\nSURPRISE: nothing is as expected"),
            {**planned("revise", step("c9")), "delay_ms": LONG_MS},
        ),
        window("1/2 steps"),
    ),
    "compose": (
        (
            planned("compose", step("a10"), step("b10")),
            says("a10", "one"),
            says("b10", "two"),
            {**composes("never"), "delay_ms": LONG_MS},
        ),
        window("2/2 steps"),
    ),
    "from now on use tabs": (
        (to("from now on", answer("All right, tabs.")), decides(delay_ms=60_000)),
        window("All right, tabs."),
    ),
}
SCRIPT = tuple(reply for script, _ in MOMENTS.values() for reply in script)


def opened(sit: Open, **environ: str) -> Seat:
    seat = sit(AGAIN, *SCRIPT, rows=40, AGENT_MEMORY_TIMEOUT_S="60", **environ)
    seat.sees("Ctrl-D leaves")
    return seat


def reaches(seat: Seat, moment: str) -> None:
    seat.types(moment + ENTER)
    seat.until(lambda: MOMENTS[moment][1](seat), f"the moment {moment!r}")


def is_at_the_prompt(seat: Seat) -> None:
    """Type something and take it back."""
    seat.types("usable?")
    seat.until(lambda: "> usable?" in seat.window(), "what is typed")
    seat.types(ctrl("u"))
    seat.until(lambda: "> usable?" not in seat.window(), "an empty prompt")


@pytest.mark.parametrize("environ", [{}, {"AGENT_BACKEND": "host", "AGENT_APPROVAL_MODE": "yolo"}])
def test_ctrl_c_ends_any_moment_of_a_run(sit: Open, environ: dict[str, str]) -> None:
    chance = random.Random(seed := os.urandom(4).hex())
    seat = opened(sit, **environ)
    moments = [moment for moment in MOMENTS if not (environ and moment == "push")]
    chance.shuffle(moments)
    for number, moment in enumerate(moments, 1):
        reaches(seat, moment)
        seat.watches(chance.choice((0, 0.05, 0.5)))
        below = processes_below(seat.child.pid)
        began = time.monotonic()
        seat.types(ctrl("c"))
        seat.until(lambda number=number: len(result_of(seat)) == number, f"{moment!r} to end, seed {seed}")
        is_at_the_prompt(seat)
        assert time.monotonic() - began < SOON_S, f"{moment!r}, seed {seed}"
        assert all_gone(below), f"{moment!r}, seed {seed}: {[words_of(pid) for pid in below]}"
    assert set(result_of(seat)) == {0, 130}
    assert "Traceback" not in is_usable(seat, within_s=5)


def test_ctrl_c_twice_at_any_moment_leaves_the_terminal_as_it_was(sit: Open) -> None:
    moment = random.choice(sorted(MOMENTS))
    seat = sit(*SCRIPT, AGENT_MEMORY_TIMEOUT_S="60")
    before = termios.tcgetattr(seat.child.child_fd)
    seat.sees("Ctrl-D leaves")
    reaches(seat, moment)
    below = processes_below(seat.child.pid, with_keeper=True)
    seat.types(ctrl("c") + ctrl("c"))
    seat.until_gone()
    assert termios.tcgetattr(seat.child.child_fd) == before, moment
    assert (seat.ends(), all_gone(below)) == (0, True), moment
    assert len(result_of(seat)) == 1, moment
    assert [seat.bytes_seen.rfind(on) > seat.bytes_seen.rfind(off) for on, off in RESTORED] == [True] * 3


def test_ctrl_c_takes_back_one_thing_at_a_time(sit: Open) -> None:
    seat = opened(sit, EDITOR="sleep", VISUAL="sh -c 'sleep 64'")
    reaches(seat, "push")
    seat.settles()
    # Words for a card first, then the run.
    seat.types("w")
    seat.sees("say why not: Enter sends it, Ctrl-C gives it up")
    seat.types("not tod")
    seat.sees("> not tod")
    seat.types(ctrl("c"))
    seat.sees_no_more("not tod")
    seat.until(lambda: "[n] no" in seat.window(), "the card to be back")
    assert result_of(seat) == []
    seat.types(ctrl("c"))
    seat.until(lambda: result_of(seat) == [130], "the run to end")
    # A menu, a search, a draft: the line, and nothing else.
    for typed, sign in (("/mo", "Show or choose the model."), (ctrl("r") + "pus", "search"), ("a draft", "> a draft")):
        seat.types(typed)
        seat.sees(sign)
        seat.types(ctrl("c"))
        seat.sees_no_more(sign)
        is_at_the_prompt(seat)
    # The editor, which has the terminal.
    seat.types("text" + ctrl("x") + ctrl("e"))
    seat.until(lambda: running("sleep 64")(seat), "the editor")
    below = processes_below(seat.child.pid)
    seat.types(ctrl("c"))
    seat.sees("did not end well")
    assert all_gone(below)
    seat.types(ctrl("u"))
    # What was steered goes with its run.
    reaches(seat, "think")
    seat.types("hurry" + ctrl("s") + ctrl("c"))
    seat.until(lambda: result_of(seat) == [130, 130], "the run to end")
    is_usable(seat, within_s=5)


def test_an_own_command_that_defies_ctrl_c_is_ended_by_pressing_it_again(sit: Open) -> None:
    seat = opened(sit)
    seat.says("!trap '' INT; sleep 65; sleep 66")
    seat.until(lambda: running("sleep 65")(seat), "the command")
    below = processes_below(seat.child.pid)
    began = time.monotonic()
    seat.types(ctrl("c") * 3)
    seat.sees("your next request takes this output along")
    is_at_the_prompt(seat)
    assert time.monotonic() - began < SOON_S + 1
    assert all_gone(below)
    assert [event for event in events(seat) if event["type"] == "result"] == []
