"""The runs behind the pictures: a small project, a scripted model, real tools, the real sandbox, a real terminal."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.cli.repl.terminal_session import ENTER, TerminalSession
from tests.cli.terminal_user import User, hand_out, lead_call, lead_reply, plan, step, step_call, step_reply
from tests.docs.terminal_svg import render_screen, render_svg
from tests.docs.update_console_blocks import reader

_LOOK = "I look at the project first."
_HAND_OUT = "Three things can be found out at the same time; the changes follow from them."
REQUEST = "round invoice totals half up, with a test, and note it in the changelog"
PUBLISH = "push it, and write the mail to the customers"
# Longer than any scene takes: the model does not reply any more.
_FOREVER_MS = 600_000
_FILES = {
    "invoice.py": '''"""Invoices."""

from decimal import ROUND_HALF_EVEN, Decimal


def total(lines: list[tuple[Decimal, int]]) -> Decimal:
    """Return what is to be paid."""
    exact = sum((price * count for price, count in lines), Decimal())
    return exact.quantize(Decimal("0.01"), ROUND_HALF_EVEN)
''',
    "test_invoice.py": '''"""Totals of invoices."""

from decimal import Decimal
from unittest import TestCase

from invoice import total


class Totals(TestCase):
    def test_a_line_counts_as_often_as_it_is_ordered(self) -> None:
        self.assertEqual(total([(Decimal("2.50"), 4)]), Decimal("10.00"))
''',
    "MANUAL.md": "# Invoices\n\nTotals are rounded half up, to the cent.\n",
    "CHANGES.md": "# Changes\n",
    "Makefile": "test:\n\t@python3 -m unittest -q 2>&1 | tail -3\n",
}
_GIT = (
    "init -q -b main",
    "config user.name Ada",
    "config user.email ada@example.org",
    "add -A",
    "commit -qm Shop",
)
_TEST = """
    def test_half_a_cent_is_rounded_up(self) -> None:
        self.assertEqual(total([(Decimal("0.125"), 1)]), Decimal("0.13"))
"""
_ANSWER = """\
Totals are now **rounded half up**, as the manual promises [promise].

- `invoice.py` rounds with `ROUND_HALF_UP`; nothing else in the project rounds [fix, callers]
- a new test covers half a cent; the tests pass, before and after [tests, prove]
- the change is noted in `CHANGES.md` [note]
"""


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One picture: its title, the size of the window, and the input that leads to it."""

    name: str
    title: str
    columns: int
    rows: int
    play: Callable[["Scene", User], TerminalSession]

    def svg(self, home: Path) -> str:
        """Play the scene in a temporary home and return its picture."""
        terminal = self.play(self, _make_user(home))
        try:
            # Replace the random name of the temporary home.
            sent = terminal.raw_output.replace(str(home).encode(), b"/home/ada")
            screen = render_screen(sent, columns=self.columns, rows=self.rows)
        finally:
            terminal.close()
        return render_svg(screen, title=self.title)

    def open_terminal(self, user: User, *words: str, **environ: str) -> TerminalSession:
        """Open a terminal of the scene's size."""
        return TerminalSession(user, *words, columns=self.columns, rows=self.rows, NO_COLOR="", **environ)


def _make_user(home: Path) -> User:
    """Return a user with a git repository."""
    user = reader(home)
    project = home / "project"
    project.mkdir()
    for name, text in _FILES.items():
        (project / name).write_text(text)
    for line in _GIT:
        subprocess.run(["git", *line.split()], cwd=project, env=user.environment(), check=True)
    return user


def _with_usage(reply: dict[str, object], tokens: int, after_ms: int = 0) -> dict[str, object]:
    """Return a reply with usage, at a fifth of a cent per thousand tokens."""
    usage = {"input_tokens": tokens, "output_tokens": tokens // 10, "cost_usd": tokens * 2e-6}
    return {**reply, "usage": usage, "delay_ms": after_ms}


_STEPS = (
    step("tests", title="Run the tests as they are"),
    step("callers", title="Find out who rounds, and how"),
    step("promise", title="Read what the manual promises"),
    step("fix", "tests", "callers", "promise", title="Round half up", writes=["invoice.py"]),
    step("prove", "fix", title="Add a test and run all", writes=["test_invoice.py"]),
    step("note", "fix", title="Write the changelog", writes=["CHANGES.md"]),
)


def _first_replies() -> list[dict[str, object]]:
    """Replies of a lead that looks around, then hands out a longer plan whose first three steps run in parallel."""
    return [
        _with_usage({**lead_call("list_directory", path="."), "text": _LOOK}, 980),
        {**_with_usage({**hand_out(*_STEPS), "text": _HAND_OUT}, 1120), "chunks": 1},
        _with_usage(step_call("tests", "run_command", command="make test"), 1210),
        _with_usage(step_call("callers", "search_text", pattern="quantize|round"), 1180, after_ms=900),
        _with_usage(step_call("promise", "read_file", path="MANUAL.md"), 1160, after_ms=1400),
    ]


def _play_running(scene: Scene, user: User) -> TerminalSession:
    text = "Only `total` in invoice.py rounds, half to even. "
    replies = [
        *_first_replies(),
        {**_with_usage(step_reply("callers", text * 2), 1280), "chunks": 2, "chunk_delay_ms": _FOREVER_MS},
        _with_usage(step_reply("tests", "…"), 1300, after_ms=_FOREVER_MS),
        _with_usage(step_reply("promise", "…"), 1240, after_ms=_FOREVER_MS),
    ]
    terminal = _start_request(scene, user, REQUEST, replies)
    for shown in ("│ OK", "to the cent.", "half to even"):
        terminal.wait_for(shown)
    terminal.send("then bump the version")
    terminal.wait_for("then bump the version")
    return terminal


def _play_approval(scene: Scene, user: User) -> TerminalSession:
    replies = [
        {
            **_with_usage(hand_out(step("push", title="Push it"), step("mail", title="Write the mail")), 410),
            "chunks": 1,
        },
        _with_usage(step_call("mail", "run_command", command="git log --oneline -1"), 1190),
        _with_usage(step_reply("mail", "…"), 1240, after_ms=_FOREVER_MS),
        _with_usage(step_call("push", "run_command", command="make test && git push origin main"), 1500, after_ms=1200),
    ]
    terminal = _start_request(scene, user, PUBLISH, replies)
    for shown in ("[y] once", "│ waiting for you", " Shop"):
        terminal.wait_for(shown)
    return terminal


def _play_finished(scene: Scene, user: User) -> TerminalSession:
    even, up = "ROUND_HALF_EVEN", "ROUND_HALF_UP"
    last = 'Decimal("10.00"))\n'
    changed = "# Changes\n\n- Totals are rounded half up.\n"
    replies = [
        *_first_replies(),
        _with_usage(step_reply("tests", "The test passes."), 1300, after_ms=300),
        _with_usage(step_reply("callers", "Only `total` in invoice.py rounds, half to even."), 1280, after_ms=900),
        _with_usage(step_reply("promise", "MANUAL.md promises rounding half up, to the cent."), 1240, after_ms=900),
        _with_usage(
            step_call("fix", "edit_file", path="invoice.py", old_text=even, new_text=up, replace_all=True), 1390
        ),
        _with_usage(step_reply("fix", "total rounds half up."), 1560),
        _with_usage(
            step_call("prove", "edit_file", path="test_invoice.py", old_text=last, new_text=last + _TEST), 1420
        ),
        _with_usage(step_call("prove", "run_command", command="make test"), 1460),
        _with_usage(step_reply("prove", "Both tests pass."), 1490),
        _with_usage(step_call("note", "write_file", path="CHANGES.md", content=changed), 1330, after_ms=1500),
        _with_usage(step_reply("note", "Noted."), 1370),
        _with_usage(lead_reply(_ANSWER), 1900, after_ms=600),
    ]
    terminal = _start_request(scene, user, REQUEST, replies)
    terminal.wait_for("6 ok")
    terminal.pause()
    return terminal


def _play_plan(scene: Scene, user: User) -> TerminalSession:
    user.script(_with_usage(plan(*_STEPS), 640), name="shop.jsonl")
    terminal = scene.open_terminal(user, "plan", "--model", "script:../shop.jsonl", REQUEST)
    terminal.wait_exit()
    return terminal


def _start_request(scene: Scene, user: User, request: str, replies: list[dict[str, object]]) -> TerminalSession:
    """Open the REPL and ask."""
    user.script(*replies, name="shop.jsonl")
    terminal = scene.open_terminal(user, AGENT_MODEL="script:../shop.jsonl", AGENT_APPROVAL_MODE="auto-edit")
    terminal.wait_for("auto-edit")
    terminal.send(request + ENTER)
    return terminal


SCENES = (
    Scene(name="running", title="agent", columns=100, rows=30, play=_play_running),
    Scene(name="approval", title="agent", columns=100, rows=30, play=_play_approval),
    Scene(name="finished", title="agent", columns=100, rows=70, play=_play_finished),
    Scene(name="plan", title=f'agent plan "{REQUEST}"', columns=100, rows=14, play=_play_plan),
)
