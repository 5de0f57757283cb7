"""Measure the time from the first byte of an answer on the wire until its first word is on the screen."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.measure import BenchResult, milliseconds
from bench.program import AGENT, Home
from bench.prompt import MODEL, READY, PtySession, open_session
from bench.replies import offers_tools
from tests.provider.replies import Pace, Reply
from tests.provider.server import ReceivedRequest
from tests.provider.threaded import ThreadedProvider

ROUNDS = 10
# Found neither in the question nor in anything else on the screen.
FIRST_WORD = "Windmills"
ANSWER = f"{FIRST_WORD} turn because the wind pushes their sails, which are set at an angle to it. " * 3
QUESTION = "why do they turn"
# Long enough that a word which waits for the whole answer cannot be taken for one that does not.
PAUSE_S = 0.05
# The first part of a stream only names the role.
_FIRST_CONTENT = 1


def first_word() -> list[BenchResult]:
    """Measure `agent run` on a terminal, and the prompt."""
    limit = 20
    return [
        milliseconds("first byte → first visible word, `agent run` on a terminal", limit, _rounds(_from_run)),
        milliseconds("first byte → first visible word, at the prompt", limit, _rounds(_from_prompt)),
    ]


def _rounds(measure: Callable[[Home, ThreadedProvider], float]) -> list[float]:
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(otherwise=_answer) as provider:
        home = Home(Path(name), provider)
        # The first round is a warm-up.
        return [measure(home, provider) for _ in range(ROUNDS + 1)][1:]


def _from_run(home: Home, provider: ThreadedProvider) -> float:
    with open_session(home, AGENT, "run", "--model", MODEL, QUESTION) as session:
        return _shown_after(session, provider)


def _from_prompt(home: Home, provider: ThreadedProvider) -> float:
    with open_session(home, AGENT) as session:
        session.wait_for(READY)
        session.send_keys(QUESTION.encode() + b"\r")
        return _shown_after(session, provider)


def _shown_after(session: PtySession, provider: ThreadedProvider) -> float:
    shown_at = session.wait_for(FIRST_WORD.encode())
    return shown_at - provider.requests[-1].sent_at[_FIRST_CONTENT]


def _answer(request: ReceivedRequest) -> Reply:
    """Answer in fragments whose first is a whole word; a planner is answered in its own format."""
    text = ANSWER if offers_tools(request) else json.dumps({"answer": ANSWER})
    return Reply(text=text, fragment_chars=len(FIRST_WORD) + 1, pace=Pace(between_s=PAUSE_S))
