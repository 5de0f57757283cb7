"""Measure when the first word of an answer is on the screen: after Enter, and after its first byte on the wire."""

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import BenchResult, milliseconds, ratio, sample_interleaved
from bench.program import AGENT, BARE_PROMPT, PYTHON, Home
from bench.replies import offers_tools
from bench.terminal.prompt import MODEL, READY, PtySession, open_session
from tests.provider.replies import Pace, Reply
from tests.provider.server import ReceivedRequest
from tests.provider.threaded import ThreadedProvider

ROUNDS = 10
# Occurs neither in the question nor elsewhere on the screen.
FIRST_WORD = "Windmills"
ANSWER = f"{FIRST_WORD} turn because the wind pushes their sails, which are set at an angle to it. " * 3
QUESTION = "why do they turn"
# Long enough to distinguish a word that waits for the whole answer from one that does not.
PAUSE_S = 0.05
THINKING_S = 0.4
TYPING_S = 1.5
# The first part of a stream only contains the role.
_FIRST_CONTENT = 1


def first_word() -> list[BenchResult]:
    """Measure from Enter at the prompt to the first word, against a bare client that waits for a line, too."""
    with tempfile.TemporaryDirectory() as name, ThreadedProvider(otherwise=_answer) as provider:
        home, body = Home(Path(name), provider), Path(name, "body.json")
        bare = (PYTHON, BARE_PROMPT, f"{provider.base_url}/chat/completions", str(body))

        def ours() -> float:
            taken = _from_enter(home, AGENT)
            body.write_text(json.dumps(provider.requests[-1].body))
            return taken

        samples = sample_interleaved(ROUNDS, ours, lambda: _from_enter(home, *bare))
    return [ratio("Enter → first visible word at the prompt, against a bare client", 1.15, *samples)]


def _from_enter(home: Home, *words: str) -> float:
    with open_session(home, *words) as session:
        session.wait_for(READY)
        # A user reads the greeting and types; meanwhile the program finishes its imports.
        time.sleep(TYPING_S)
        session.send_keys(QUESTION.encode())
        time.sleep(PAUSE_S)
        entered_at = time.monotonic()
        session.send_keys(b"\r")
        return session.wait_for(FIRST_WORD.encode()) - entered_at


def first_byte() -> list[BenchResult]:
    """Measure from the first byte to the first word, of `agent run` on a terminal and at the prompt."""
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
    """Answer in fragments, the first a whole word; a planner is answered in its own format."""
    text = ANSWER if offers_tools(request) else json.dumps({"answer": ANSWER})
    return Reply(text=text, fragment_chars=len(FIRST_WORD) + 1, pace=Pace(head_s=THINKING_S, between_s=PAUSE_S))
