"""Flags and observations for runs in which a lead hands out steps."""

from collections.abc import Sequence

from agent.model.port import ModelRequest
from tests.agent.orchestrator.run_harness import FinishedRun

# The limit ends a run that would wait for ever.
AUTO = {"planning": "auto", "approval_mode": "yolo", "timeout_s": 60}
FAILS = {"match": {"step": "a"}, "fault": "refused"}


def lead_requests(requests: Sequence[ModelRequest]) -> list[ModelRequest]:
    return [request for request in requests if request.purpose == "lead"]


def plan_results(run: FinishedRun) -> list[str]:
    """What the lead read as results of its plan calls."""
    return [str(event["output"]) for event in run.of_type("tool.completed") if event["name"] == "plan"]
