"""Measure the overhead of hooks on a tool call: none if no hook is configured, little with one."""

import asyncio
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from agent.backends.backend import Backend
from agent.backends.host import HostCommandRunner
from agent.backends.tool_executor import build_tool_executor
from agent.hooks.hook import GuardHook
from agent.hooks.runner import HookRunner
from bench.measure import BenchResult, format_ms, sample_interleaved
from tests.tooling.tool_harness import NoUser
from tooling.approvals.policy import PolicyApprover
from tooling.contract.context import ExecCtx
from tooling.contract.interceptor import Interceptor

CALLS = 200
ROUNDS = 20


def hooks() -> list[BenchResult]:
    """Measure a read call without hooks, with an empty list of hooks, and with a guard that passes it."""
    bare, empty, guarded = sample_interleaved(
        ROUNDS,
        lambda: _seconds_per_call(()),
        lambda: _seconds_per_call(HookRunner(()).interceptors),
        lambda: _seconds_per_call(HookRunner((GuardHook(),)).interceptors),
    )
    return [
        _added("a tool call, added by hooks if none is configured", 1, empty, bare),
        _added("a tool call, added by one guard hook in Python", 2, guarded, bare),
    ]


def _added(what: str, limit: float, samples: Sequence[float], baseline: Sequence[float]) -> BenchResult:
    detail = f"{format_ms(median(samples))} against {format_ms(median(baseline))}, {len(samples)} interleaved runs"
    added = max(0.0, median(samples) - median(baseline))
    return BenchResult(what=what, measured=added * 1000, limit=limit, unit="ms", detail=detail)


def _seconds_per_call(interceptors: Sequence[Interceptor]) -> float:
    async def measure() -> float:
        backend = Backend(name="host", runner=HostCommandRunner({}))
        approver = PolicyApprover(mode="auto-edit")
        executor, _ = build_tool_executor(backend, approver=approver, asker=NoUser(), hooks=interceptors)
        ctx = ExecCtx(user_id=uuid.uuid4(), task_id=uuid.uuid4(), working_dir=Path.cwd())
        started = time.perf_counter()
        for _ in range(CALLS):
            await executor.call_tool("manage_tasks", {"action": "list"}, ctx)
        elapsed = time.perf_counter() - started
        await executor.close()
        return elapsed / CALLS

    return asyncio.run(measure())
