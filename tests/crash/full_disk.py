"""`python -m tests.crash.full_disk HOME ROUNDS`: runs on a real file system that fills up, in a namespace of its own.

The data folder is a small tmpfs; before each round a ballast leaves it a random amount of room.
"""

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.cli.terminal_user import ProgramResult, User
from tests.crash.test_kills import read_log, repeated_steps
from tests.crash.twenty_steps import NAMES, Workload, task_plan, tool_plan
from tests.docs.grammar import broken_rules

SIZE = 2 << 20
# From nothing at all to enough for a part of a run.
FREE_BYTES = (0, 60_000)
STREAM = ("--output-format", "stream-json")
SESSION = "s"
ENDS = ("error", "result")


def main(home: Path, rounds: int) -> None:
    chance = random.Random(seed := random.randrange(1 << 30))
    for number, make in enumerate((tool_plan, task_plan)):
        folder = home / str(number)
        folder.mkdir()
        user = User(home=folder)
        user.data.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "tmpfs", user.data], check=True)
        run_rounds(make(user), rounds, chance, f"seed {seed}, {make.__name__}")


def run_rounds(work: Workload, rounds: int, chance: random.Random, place: str) -> None:
    """Run and resume on a full disk, then once with room enough, and see that nothing was lost or done twice."""
    user = work.user
    words = first = (*work.argv, "--session", SESSION)
    for _ in range(rounds):
        ballast = fill_disk(user.data, chance.randint(*FREE_BYTES))
        ended = user.agent(*words, *STREAM)
        ballast.unlink()
        told = check_result(ended, user, place)
        if told == 0:
            break
        words = ("resume", SESSION) if has_request(user) else first
    else:
        ended = user.agent(*words, *STREAM)
        assert check_result(ended, user, place) == 0, f"{place}: {ended.stderr}\n{ended.stdout[-2000:]}"
    assert Counter(work.lines) == Counter(NAMES), f"{place}: {work.lines}"
    assert repeated_steps(read_log(user, SESSION)) == [], place


def check_result(ended: ProgramResult, user: User, place: str) -> int:
    """See that what was told is kept and what could not be kept was not told; return the exit code."""
    assert "Traceback" not in ended.stderr and "internal error" not in ended.stdout, f"{place}: {ended.stderr}"
    log = read_log(user, SESSION)
    kept = {event["seq"] for event in log}
    # How a run ended is told even when nothing can be written any more, and so is the `init` of one that never began.
    untold = (*ENDS, "init") if len(ended.events) <= len(ENDS) + 1 else ENDS
    told = {event["seq"] for event in ended.events if event["type"] not in untold and event["session_id"]}
    # What was under way is told as cancelled, which claims nothing.
    told -= {event["seq"] for event in ended.events if event.get("delta") or event.get("status") == "cancelled"}
    assert told <= kept, f"{place}: told and not kept: {sorted(told - kept)}"
    if ended.events:
        assert ended.events[-1]["type"] == "result", place
        assert ended.events[-1]["exit_code"] == ended.exit_code, place
        assert (rules := broken_rules(ended.events)) == [], f"{place}: {rules}"
    return ended.exit_code


def has_request(user: User) -> bool:
    return any(event.get("role") == "user" for event in read_log(user, SESSION))


def fill_disk(folder: Path, room: int) -> Path:
    """Leave only so much room in a file system."""
    ballast = folder / "ballast"
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    ballast.write_bytes(b"x" * max(0, free - room))
    return ballast


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
    print("done")
