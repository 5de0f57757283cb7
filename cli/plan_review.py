"""A plan that a model made goes through the person's editor before its first step starts."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from agent.config.settings import Settings
from agent.planning.graph import in_order
from agent.vocabulary.plan import Plan
from cli.given_plan import check_size, means_of
from cli.run.plan_editor import PlanEditor


class PlanReview:
    """Opens the editor while the run waits; nothing else is going on then."""

    def __init__(self, *, settings: Settings, environ: Mapping[str, str], request: str) -> None:
        self._settings = settings
        self._request = request
        self._editor = PlanEditor(means_of(settings), environ)

    @property
    def is_open(self) -> bool:
        """Say whether the terminal belongs to the editor now, and Ctrl-C with it."""
        return self._editor.is_open

    async def __call__(self, plan: Plan) -> Plan:
        """Return the plan as the person wants it."""
        if plan.answer is not None:
            return plan
        try:
            steps = await asyncio.to_thread(self._editor.edited, plan.steps, self._request)
        finally:
            self._editor.stop()
        check_size(len(steps), self._settings)
        return replace(plan, steps=in_order(steps))
