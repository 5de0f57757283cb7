"""Runs that are killed repeatedly at random moments complete after a resume, and nothing is repeated or lost."""

import json
import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest

from agent.sessions.resume.resume_state import unfinished_run
from agent.vocabulary.message import Message, ToolCall
from agent.vocabulary.plan import LEAD
from agent.vocabulary.unfinished import UnfinishedRun, UnfinishedStep
from tests.agent.execution.test_races import problems_of
from tests.cli.terminal_user import User
from tests.crash.twenty_steps import NAMES, Workload, led_plan, task_plan, tool_plan
from tests.docs.grammar import broken_rules

pytestmark = pytest.mark.slow
STREAM = ("--output-format", "stream-json")
LIMIT_S = 60
# After this many kills a run may complete, because less and less of it is left.
MAX_KILLS_PER_RUN = 8


class Killer:
    """Kills runs after a random number of events or a random time."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def run(self, user: User, words: tuple[str, ...], *, is_killed: bool) -> list[dict[str, object]]:
        """Return the events of a run up to its end or the kill."""
        if not is_killed:
            return self.run_until(user, words)
        if self._rng.random() < 0.25:
            # Also before the first event, while the program starts.
            return self.run_until(user, words, limit_s=self._rng.uniform(0, 1.5))
        return self.run_until(user, words, events=self._rng.randrange(1, 170))

    def run_until(
        self, user: User, words: tuple[str, ...], *, events: int | None = None, limit_s: float = LIMIT_S
    ) -> list[dict[str, object]]:
        """Kill a run after some events or some time, and return its events."""
        emitted: list[dict[str, object]] = []
        with subprocess.Popen(
            user.command(*words, *STREAM),
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env=user.environment(),
            cwd=user.home,
        ) as process:
            assert process.stdout
            timer = threading.Timer(limit_s, process.kill)
            timer.start()
            for line in process.stdout:
                if line.endswith(b"\n"):
                    emitted.append(json.loads(line))
                if len(emitted) == events:
                    time.sleep(self._rng.uniform(0, 0.02))
                    process.kill()
                    break
            process.wait(LIMIT_S)
            timer.cancel()
        return emitted


def read_log(user: User, session: str) -> list[dict[str, object]]:
    """Return the log of a session without a torn last line."""
    path = user.data / "sessions" / session / "events.jsonl"
    *lines, rest = path.read_bytes().split(b"\n") if path.exists() else [b""]
    # Bytes after the last line feed are an unfinished event that was never emitted.
    assert len(rest) < 1_000_000
    return [json.loads(line) for line in lines]


def repeated_steps(log: list[dict[str, object]]) -> list[object]:
    """Return the steps of which a call was started after they had succeeded."""
    done: set[object] = set()
    repeated: list[object] = []
    for event in log:
        if event["type"] == "step.completed" and event["status"] in ("ok", "partial"):
            done.add(event["step_id"])
        elif event["type"] == "tool.started" and event["step_id"] in done:
            repeated.append(event["step_id"])
    return repeated


@pytest.mark.parametrize("make", [tool_plan, task_plan, led_plan])
def test_a_run_that_is_killed_at_random_moments_completes_and_repeats_nothing(
    user: User, make: Callable[[User], Workload], kills: int
) -> None:
    seed = random.randrange(1 << 30)
    killer, left, sessions = Killer(seed), kills // 2, 0
    while left > 0:
        work = make(user)
        work.output_file.unlink(missing_ok=True)
        session = f"session-{sessions}"
        sessions += 1
        first, words = (*work.argv, "--session", session), (*work.argv, "--session", session)
        seen: set[object] = set()
        for number in range(MAX_KILLS_PER_RUN + 1):
            emitted = killer.run(user, words, is_killed=number < MAX_KILLS_PER_RUN and left > 0)
            log = read_log(user, session)
            seen |= {event["seq"] for event in emitted if not event.get("delta")}
            assert seen <= {event["seq"] for event in log}, f"seed {seed}: an emitted event is not in the log"
            # A kill can come after the result was logged and before it was emitted.
            if log and log[-1]["type"] == "result":
                break
            left -= 1
            # A run that was killed before its request was logged cannot be resumed.
            has_request = any(event.get("role") == "user" for event in log)
            words = ("resume", session) if has_request else first
        check_end(work, log, f"seed {seed}, session {session}")


def check_end(work: Workload, log: list[dict[str, object]], place: str) -> None:
    result = log[-1]
    assert (result["type"], result["exit_code"]) == ("result", 0), f"{place}: {result}"
    assert Counter(work.lines) == Counter(NAMES), place
    assert repeated_steps(log) == [], place
    assert broken_rules([event for event in log if event["run_id"] == result["run_id"]]) == [], place
    assert [event["seq"] for event in log] == sorted({int(str(event["seq"])) for event in log}), place


def open_calls(run: UnfinishedRun) -> tuple[ToolCall, ...]:
    """Return the calls in the lead's conversation that are made again on resume."""
    known = {call.id for message in run.conversation for call in message.tool_calls}
    return tuple(call for call in run.steps.get(LEAD, UnfinishedStep()).open_calls if call.id in known)


@pytest.mark.parametrize("make", [task_plan, led_plan])
def test_a_log_cut_anywhere_can_be_resumed_with_every_provider(user: User, make: Callable[[User], Workload]) -> None:
    work = make(user)
    Killer(seed=3).run_until(user, (*work.argv, "--session", "s"), events=90)
    log = user.data / "sessions/s/events.jsonl"
    # On a busy machine the kill may come after the end: then the log is cut as a kill would have cut it.
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:90]))
    assert user.agent("resume", "s").exit_code == 0
    # Up to the last result, after which there is nothing to resume.
    lines = log.read_bytes().splitlines(keepends=True)[:-1]
    first = json.loads(lines[0])["run_id"]
    started: set[str] = set()
    for count in range(2, len(lines) + 1):
        log.write_bytes(b"".join(lines[:count]) + lines[count - 1][:50])
        run = unfinished_run(log, first, lambda tool: "execute")
        for name, step in run.steps.items():
            started.add(name)
            assert problems_of(step.messages) == [], f"{name} after {count} lines"
        closed = [Message(role="tool", tool_call_id=call.id) for call in open_calls(run)]
        assert problems_of([*run.conversation, *closed]) == [], f"the lead after {count} lines"
    events = [json.loads(line) for line in lines]
    worked = {event["step_id"] for event in events if event["type"] == "tool.started"}
    # After a late kill the last steps are only looked up.
    assert started >= worked and len(worked) > len(NAMES) // 2
