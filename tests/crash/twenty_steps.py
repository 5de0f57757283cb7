"""A run of twenty steps with side effects, several at a time: each appends one line to a file."""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.cli.terminal_user import User, composer_reply, plan

LAYERS, WIDTH = 5, 4
NAMES = tuple(f"s{number:02}" for number in range(LAYERS * WIDTH))
FILE = "out.txt"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """How a run is begun, and what is there when it has ended."""

    user: User
    argv: tuple[str, ...]

    @property
    def output_file(self) -> Path:
        return self.user.home / "work" / FILE

    @property
    def lines(self) -> list[str]:
        return self.output_file.read_text().splitlines() if self.output_file.exists() else []


def append_command(name: str) -> str:
    """Return a command that can be killed before and after it has had its effect."""
    return f"sleep 0.01; echo {name} >> {FILE}; sleep 0.01"


def check_command(name: str) -> str:
    return f"grep -qsx {name} {FILE}"


def dependencies(number: int) -> list[str]:
    """Return the steps that a step waits for: two of the layer before."""
    layer, place = divmod(number, WIDTH)
    return [NAMES[(layer - 1) * WIDTH + (place + more) % WIDTH] for more in (0, 1)] if layer else []


def tool_plan(user: User) -> Workload:
    """Twenty direct calls, without any model; whether one had its effect is decided by its check."""
    steps = [
        {
            "id": name,
            "title": f"Append {name}",
            "tool": "run_command",
            "args": {"command": append_command(name)},
            "verify": check_command(name),
            "depends_on": dependencies(number),
        }
        for number, name in enumerate(NAMES)
    ]
    file = user.home / "plan.json"
    file.write_text(json.dumps({"request": "append twenty lines", "steps": steps}))
    return Workload(user=user, argv=("run", "--plan", str(file), *_run_flags(user)))


def task_plan(user: User) -> Workload:
    """Twenty steps of a model that looks before it does again what it may have done."""
    steps = [
        {"id": name, "title": name, "instruction": f"Append {name}.", "depends_on": dependencies(number)}
        for number, name in enumerate(NAMES)
    ]
    replies = [reply for name in NAMES for reply in _step_replies(name)]
    # Slow enough for a kill before the plan is whole; the rest of it is then planned again.
    planner = plan(*steps) | {"chunks": 8, "chunk_delay_ms": 20}
    model = user.script(planner, *replies, composer_reply("All lines are there."))
    return Workload(user=user, argv=("run", "append twenty lines", "--model", model, *_run_flags(user)))


def _step_replies(name: str) -> list[dict[str, object]]:
    def when(contains: str, command: str) -> dict[str, object]:
        match = {"purpose": "step", "step": name, "contains": contains}
        call = {"name": "run_command", "arguments": {"command": command}}
        return {"match": match, "tool_calls": [call], "repeat": True}

    done = {"match": {"purpose": "step", "step": name, "contains": "empty output"}, "text": f"{name} is there."}
    return [
        # Also a call that was certainly not run may have been a look at what an earlier one had done.
        when("(Unknown|Cancelled): the run was stopped", f"{check_command(name)} || echo {name} >> {FILE}"),
        done | {"repeat": True},
        when(f"Append {name}", append_command(name)),
    ]


def _run_flags(user: User) -> tuple[str, ...]:
    folder = user.home / "work"
    folder.mkdir(exist_ok=True)
    return ("-C", str(folder), "--concurrency", str(WIDTH))
