"""`python -m tests.crash.full_disk HOME ROUNDS`: runs on a file system that fills up; needs a mount namespace.

The data folder is a small tmpfs; before each round a file leaves a random amount of space in it.
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
# From nothing to enough for a part of a run.
FREE_BYTES = (0, 60_000)
STREAM = ("--output-format", "stream-json")
SESSION = "s"
ENDS = ("error", "result")


def main(home: Path, rounds: int) -> None:
    rng = random.Random(seed := random.randrange(1 << 30))
    for number, make in enumerate((tool_plan, task_plan)):
        folder = home / str(number)
        folder.mkdir()
        user = User(home=folder)
        user.data.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "tmpfs", user.data], check=True)
        run_rounds(make(user), rounds, rng, f"seed {seed}, {make.__name__}")


def run_rounds(work: Workload, rounds: int, rng: random.Random, place: str) -> None:
    """Run and resume on a full disk, then once with enough space; check that nothing was lost or repeated."""
    user = work.user
    argv = first = (*work.argv, "--session", SESSION)
    for _ in range(rounds):
        ballast = fill_disk(user.data, rng.randint(*FREE_BYTES))
        ended = user.agent(*argv, *STREAM)
        ballast.unlink()
        exit_code = check_result(ended, user, place)
        if exit_code == 0:
            break
        argv = ("resume", SESSION) if has_request(user) else first
    else:
        ended = user.agent(*argv, *STREAM)
        assert check_result(ended, user, place) == 0, f"{place}: {ended.stderr}\n{ended.stdout[-2000:]}"
    assert Counter(work.lines) == Counter(NAMES), f"{place}: {work.lines}"
    assert repeated_steps(read_log(user, SESSION)) == [], place


def check_result(ended: ProgramResult, user: User, place: str) -> int:
    """Check that every event in the output is in the log; return the exit code."""
    assert "Traceback" not in ended.stderr and "internal error" not in ended.stdout, f"{place}: {ended.stderr}"
    log = read_log(user, SESSION)
    logged = {event["seq"] for event in log}
    # The end of a run is emitted even if nothing can be written, and so is the `init` of one that never started.
    unlogged = (*ENDS, "init") if len(ended.events) <= len(ENDS) + 1 else ENDS
    emitted = {event["seq"] for event in ended.events if event["type"] not in unlogged and event["session_id"]}
    # Running calls are reported as cancelled, which needs no log.
    emitted -= {event["seq"] for event in ended.events if event.get("delta") or event.get("status") == "cancelled"}
    assert emitted <= logged, f"{place}: not in the log: {sorted(emitted - logged)}"
    if ended.events:
        assert ended.events[-1]["type"] == "result", place
        assert ended.events[-1]["exit_code"] == ended.exit_code, place
        assert (rules := broken_rules(ended.events)) == [], f"{place}: {rules}"
    return ended.exit_code


def has_request(user: User) -> bool:
    return any(event.get("role") == "user" for event in read_log(user, SESSION))


def fill_disk(folder: Path, free_bytes: int) -> Path:
    """Fill a file system except for `free_bytes`; return the file that does."""
    ballast = folder / "ballast"
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    ballast.write_bytes(b"x" * max(0, free - free_bytes))
    return ballast


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
    print("done")
