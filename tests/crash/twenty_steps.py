"""A run of twenty steps, four at a time, each of which appends one line to a file."""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.cli.terminal_user import User, composer_reply, hand_out, plan

LAYERS, WIDTH = 5, 4
NAMES = tuple(f"s{number:02}" for number in range(LAYERS * WIDTH))
FILE = "out.txt"


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The command line of a run, and the file it writes."""

    user: User
    argv: tuple[str, ...]

    @property
    def output_file(self) -> Path:
        return self.user.home / "work" / FILE

    @property
    def lines(self) -> list[str]:
        return self.output_file.read_text().splitlines() if self.output_file.exists() else []


def append_command(name: str) -> str:
    """Return a command that can be killed before and after its effect."""
    return f"sleep 0.01; echo {name} >> {FILE}; sleep 0.01"


def check_command(name: str) -> str:
    return f"grep -qsx {name} {FILE}"


def dependencies(number: int) -> list[str]:
    """Return the steps that a step depends on: two of the previous layer."""
    layer, column = divmod(number, WIDTH)
    return [NAMES[(layer - 1) * WIDTH + (column + offset) % WIDTH] for offset in (0, 1)] if layer else []


def tool_plan(user: User) -> Workload:
    """Return a plan of twenty tool calls without a model; a check decides whether a call had its effect."""
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
    """Return twenty steps of a model that checks for the effect before it repeats a call."""
    steps = [
        {"id": name, "title": name, "instruction": f"Append {name}.", "depends_on": dependencies(number)}
        for number, name in enumerate(NAMES)
    ]
    replies = [reply for name in NAMES for reply in _step_replies(name)]
    # Slow enough for a kill before the plan is complete; the rest of it is then planned again.
    planner = plan(*steps) | {"chunks": 8, "chunk_delay_ms": 20}
    model = user.script(planner, *replies, composer_reply("All lines are there."))
    return Workload(user=user, argv=("run", "append twenty lines", "--model", model, *_run_flags(user)))


def led_plan(user: User) -> Workload:
    """Return the same twenty steps, handed out by a lead."""
    user.environ["AGENT_PLANNING"] = "auto"
    replies = [reply for name in NAMES for reply in _step_replies(name)]
    steps = [
        {"id": name, "instruction": f"Append {name}.", "depends_on": dependencies(number)}
        for number, name in enumerate(NAMES)
    ]
    done = {"match": {"purpose": "lead", "contains": f'step="{NAMES[-1]}"'}, "text": "All lines are there."}
    # After a kill only the steps that had been written are known: the lead then plans the rest.
    planned = hand_out(*steps) | {"chunks": 40, "chunk_delay_ms": 10}
    model = user.script(done | {"repeat": True}, planned | {"repeat": True}, *replies)
    return Workload(user=user, argv=("run", "append twenty lines", "--model", model, *_run_flags(user)))


def _step_replies(name: str) -> list[dict[str, object]]:
    def when(contains: str, command: str) -> dict[str, object]:
        match = {"purpose": "step", "step": name, "contains": contains}
        call = {"name": "run_command", "arguments": {"command": command}}
        return {"match": match, "tool_calls": [call], "repeat": True}

    done = {"match": {"purpose": "step", "step": name, "contains": "empty output"}, "text": f"{name} is there."}
    return [
        # A call that did not run may itself have been the check after an earlier one.
        when("(Unknown|Cancelled): the run was stopped", f"{check_command(name)} || echo {name} >> {FILE}"),
        done | {"repeat": True},
        when(f"Append {name}", append_command(name)),
    ]


def _run_flags(user: User) -> tuple[str, ...]:
    folder = user.home / "work"
    folder.mkdir(exist_ok=True)
    return ("-C", str(folder), "--concurrency", str(WIDTH))
