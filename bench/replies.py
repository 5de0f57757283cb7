"""Replies of the provider to a measured run: a plan, calls, an answer."""

import json
from collections.abc import Mapping

from tests.provider.replies import Calls, Reply, Text
from tests.provider.server import ReceivedRequest

DIRECT_ANSWER = Text(json.dumps({"answer": "Done."}))
DONE = Text("Done.")


def plan(steps: int) -> Reply:
    """Return a plan of independent steps."""
    return Text(json.dumps({"steps": [_step(number) for number in range(1, steps + 1)]}))


def command(line: str) -> Reply:
    """Return a call of one shell command."""
    return Calls(("run_command", {"command": line}))


def offers_tools(request: ReceivedRequest) -> bool:
    """Return whether a request comes from a step; planner and composer offer no tools."""
    return bool(request.body.get("tools"))


def last_result(request: ReceivedRequest) -> str:
    """Return the last tool result in a request."""
    messages = request.body["messages"]
    assert isinstance(messages, list)
    return str(next(message["content"] for message in reversed(messages) if message["role"] == "tool"))


def _step(number: int) -> Mapping[str, object]:
    return {"id": f"s{number}", "title": f"Step {number}", "instruction": f"Do part {number}", "depends_on": []}
