"""A power failure during a run: stale locks, half-written files and a torn log do not prevent a resume."""

import os
from collections import Counter

import pytest

from tests.cli.terminal_user import User
from tests.crash.test_kills import Killer, read_log, repeated_steps
from tests.crash.twenty_steps import NAMES, tool_plan

pytestmark = pytest.mark.slow
TRUNCATED = {
    "SESSION.json": b"\0" * 4096,
    "steps/.deadbeef.json.0123abcd.tmp": b'{"v": 1, "key":',
    f"steps/{'f' * 64}.json": b"\0" * 512,
}


def test_a_run_can_be_resumed_after_a_power_failure(user: User) -> None:
    work = tool_plan(user)
    Killer(seed=7).run_until(user, (*work.argv, "--session", "s"), events=60)
    folder = user.data / "sessions/s"
    log = folder / "events.jsonl"
    # After the reboot another process has the id of the old one, and writes were truncated.
    (folder / "lock").write_text(f"{os.getpid()}\nappend twenty lines\n")
    log.write_bytes(log.read_bytes() + b'{"v": 1, "type": "tool.comp')
    # The kill itself may have truncated a write, too.
    truncated = {*TRUNCATED, *(f"steps/{path.name}" for path in folder.glob("steps/.*.tmp"))}
    for name, content in TRUNCATED.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)
    ended = user.agent("resume")
    assert ended.exit_code == 0, ended.stderr
    assert "SESSION.json was damaged and has been rebuilt; the damaged file is now SESSION.json.corrupt" in ended.stderr
    assert (Counter(work.lines), repeated_steps(read_log(user, "s"))) == (Counter(NAMES), [])
    repaired = user.agent("sessions", "fsck", "s")
    assert sorted(line.split("  ")[1] for line in repaired.stdout.splitlines()) == sorted(truncated)[1:]
    assert user.agent("sessions", "fsck", "s").exit_code == 0
