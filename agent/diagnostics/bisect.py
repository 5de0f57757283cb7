"""Finds the step of a run after which a check fails, by trying the check on copies of the workspace."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from agent.sessions.checkpoints.points import Point, RunHistory
from agent.tool_setup import ToolEnvironment, build_tools
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import CallStatus

Verdict: TypeAlias = Literal["found", "fails_before", "passes_after", "cannot_run", "refused"]
_REFUSED = ("denied", "deferred", "blocked")
_CANNOT_RUN = (126, 127)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The check at one point; number 0 is before the first change of the run."""

    number: int
    after: str
    status: CallStatus
    exit_code: int
    output: str

    @property
    def has_passed(self) -> bool:
        """Whether the check exited with 0."""
        return self.status == "ok" and self.exit_code == 0

    @property
    def is_refused(self) -> bool:
        """Whether the check was denied."""
        return self.status in _REFUSED

    @property
    def can_run(self) -> bool:
        """Whether the check could run, so that its exit code is about the workspace."""
        return not self.is_refused and self.exit_code not in _CANNOT_RUN


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    """The outcome: the first point after which the check fails, and every trial that led to it."""

    verdict: Verdict
    trials: tuple[Trial, ...]
    culprit: Point | None = None


async def bisect(points: Sequence[Point], attempt: Callable[[int], Awaitable[Trial]]) -> Bisection:
    """Run the check before and after the run, then bisect until one point is left."""
    trials: list[Trial] = []

    async def passes(number: int) -> bool | None:
        trials.append(await attempt(number))
        return trials[-1].has_passed if trials[-1].can_run else None

    def end(verdict: Verdict, culprit: Point | None = None) -> Bisection:
        if trials[-1].is_refused:
            verdict = "refused"
        return Bisection(verdict=verdict, trials=tuple(trials), culprit=culprit)

    good, bad = 0, len(points)
    for number, verdict in ((good, "fails_before"), (bad, "passes_after")):
        passed = await passes(number)
        if passed is None:
            return end("cannot_run")
        if passed != (number == good):
            return end("fails_before" if verdict == "fails_before" else "passes_after")
    while bad - good > 1:
        middle = (good + bad) // 2
        passed = await passes(middle)
        if passed is None:
            return end("cannot_run")
        good, bad = (middle, bad) if passed else (good, middle)
    return end("found", points[bad - 1])


async def bisect_run(
    history: RunHistory, scratch: Path, check: str, env: ToolEnvironment, report: Callable[[Trial], None]
) -> Bisection:
    """Bisect with a shell command in a copy of the workspace: judged, approved and sandboxed like a model's command."""
    tools = build_tools(env)
    for warning in tools.warnings:
        env.warn(warning)

    async def attempt(number: int) -> Trial:
        await asyncio.to_thread(history.apply, number, scratch)
        result = await tools.executor.call_tool("run_command", {"command": check}, env.scope.ctx_of("check"))
        trial = Trial(
            number=number,
            after=history.points[number - 1].name if number else "",
            status=result.meta.status,
            exit_code=result.exit_code,
            output=result.content if result.display is None else result.display,
        )
        report(trial)
        return trial

    try:
        return await bisect(history.points, attempt)
    finally:
        await tools.close()
