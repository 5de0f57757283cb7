"""A power cut in the middle: stale locks, half-written files and a torn log stand in nobody's way."""

import os
from collections import Counter

import pytest

from tests.cli.terminal_user import User
from tests.crash.test_kills import Killer, read_log, repeated_steps
from tests.crash.twenty_steps import NAMES, tool_plan

pytestmark = pytest.mark.slow
CUT_OFF = {
    "SESSION.json": b"\0" * 4096,
    "steps/.deadbeef.json.0123abcd.tmp": b'{"v": 1, "key":',
    f"steps/{'f' * 64}.json": b"\0" * 512,
}


def test_what_a_power_cut_leaves_behind_is_gone_on_with(user: User) -> None:
    work = tool_plan(user)
    Killer(seed=7).run_until(user, (*work.argv, "--session", "s"), events=60)
    folder = user.data / "sessions/s"
    log = folder / "events.jsonl"
    # The machine is up again: another process has the number of the old one, and writes were cut off.
    (folder / "lock").write_text(f"{os.getpid()}\nappend twenty lines\n")
    log.write_bytes(log.read_bytes() + b'{"v": 1, "type": "tool.comp')
    # The kill itself may have cut off a write, too.
    cut_off = {*CUT_OFF, *(f"steps/{path.name}" for path in folder.glob("steps/.*.tmp"))}
    for name, content in CUT_OFF.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)
    ended = user.agent("resume")
    assert ended.exit_code == 0, ended.stderr
    assert "SESSION.json was damaged; it is kept as SESSION.json.corrupt" in ended.stderr
    assert (Counter(work.lines), repeated_steps(read_log(user, "s"))) == (Counter(NAMES), [])
    told = user.agent("sessions", "fsck", "s")
    assert sorted(line.split("  ")[1] for line in told.stdout.splitlines()) == sorted(cut_off)[1:]
    assert user.agent("sessions", "fsck", "s").exit_code == 0
