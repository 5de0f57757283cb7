"""Runs the real program in a child process, with its own home folder and no API keys."""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agent.backends.sandbox.landlock.landlock_sandbox import NEEDS_BUBBLEWRAP
from agent.vocabulary import exit_codes
from tests.cli.warm_start import Invocation, run_warm
from tests.house.source_tree import ROOT
from tests.programs import WITHOUT

LIMIT_S = 60


@dataclass(frozen=True, kw_only=True)
class ProgramResult:
    """The exit code and output of one command line."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def events(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.stdout.splitlines()]

    @property
    def document(self) -> dict[str, object]:
        return json.loads(self.stdout)


@dataclass(frozen=True, kw_only=True)
class User:
    """A home folder, an environment, and the commands run in them."""

    home: Path
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        # Not in the home folder: under Landlock, which can hide nothing, it must not be inside a workspace.
        return self.home.with_name(f"{self.home.name}-data")

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "AGENT_SANDBOX": str(self.data),
            "PYTHONPATH": str(ROOT),
            "TMPDIR": tempfile.gettempdir(),
            "PYTHONWARNINGS": "error",
            # Most tests are about graphs of steps, which a planner makes for certain.
            "AGENT_PLANNING": "always",
            **self.environ,
            **more,
        }

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "cli", *words]

    def agent(self, *words: str, stdin: str | None = None, cwd: Path | None = None, **environ: str) -> ProgramResult:
        """Run `agent …` and wait for its exit."""
        invocation = Invocation(
            words=words,
            environ=self.environment(**environ),
            cwd=cwd or self.home,
            stdin=stdin.encode() if stdin is not None else None,
        )
        ended = run_warm(invocation, LIMIT_S)
        result = ProgramResult(exit_code=ended.returncode, stdout=ended.stdout.decode(), stderr=ended.stderr.decode())
        _skip_if_refused(result)
        if result.exit_code:
            # Shown if the test fails: an exit code alone gives no reason.
            print(f"agent {' '.join(words)} ended with {result.exit_code}: {result.stderr or result.stdout[-4000:]}")
        return result

    def script(self, *replies: object, name: str = "script.jsonl") -> str:
        """Write a script and return the name of the model that plays it."""
        path = self.home / name
        path.write_text("\n".join(json.dumps(reply) for reply in replies))
        return f"script:{path}"


def answer(text: str) -> dict[str, object]:
    """Script the planner to answer directly."""
    return {"match": {"purpose": "planner"}, "text": json.dumps({"answer": text})}


def plan(*steps: dict[str, object]) -> dict[str, object]:
    """Script the planner to return a plan."""
    return {"match": {"purpose": "planner"}, "text": json.dumps({"steps": list(steps)})}


def step(name: str, *after: str, **more: object) -> dict[str, object]:
    return {"id": name, "title": f"Title of {name}", "instruction": f"Do {name}", "depends_on": list(after), **more}


def step_reply(name: str, text: str, **more: object) -> dict[str, object]:
    """Script a step's model to answer."""
    return {"match": {"purpose": "step", "step": name}, "text": text, **more}


def step_call(name: str, tool: str, **arguments: object) -> dict[str, object]:
    """Script a step's model to call a tool."""
    return {"match": {"purpose": "step", "step": name}, "tool_calls": [{"name": tool, "arguments": arguments}]}


def composer_reply(text: str) -> dict[str, object]:
    return {"match": {"purpose": "composer"}, "text": text}


def lead_reply(text: str, **more: object) -> dict[str, object]:
    """Script the lead to answer."""
    return {"match": {"purpose": "lead"}, "text": text, **more}


def lead_call(tool: str, **arguments: object) -> dict[str, object]:
    """Script the lead to call a tool."""
    return {"match": {"purpose": "lead"}, "tool_calls": [{"name": tool, "arguments": arguments}]}


def hand_out(*steps: dict[str, object], **more: object) -> dict[str, object]:
    """Script the lead to hand out steps."""
    return lead_call("plan", steps=list(steps), **more)


def one_step(*replies: dict[str, object]) -> tuple[dict[str, object], ...]:
    """Script a plan of one step `s1` and the replies of that step."""
    return (plan(step("s1")), *replies)


def event_types(events: Sequence[dict[str, object]]) -> list[str]:
    return [str(event["type"]) for event in events]


def _skip_if_refused(result: ProgramResult) -> None:
    """Skip a test that works in the home folder where only Landlock is left, which refuses that folder."""
    is_refused = result.exit_code == exit_codes.NO_SANDBOX and NEEDS_BUBBLEWRAP in result.stdout + result.stderr
    if is_refused and "bwrap" in os.environ.get(WITHOUT, "").split():
        pytest.skip("without bubblewrap, a home folder cannot be the workspace")
