"""Baseline for a graph: httpx sends a body for every step as soon as its dependencies are answered."""

import asyncio
import json
import sys
from pathlib import Path

import httpx


async def walk(address: str, body: bytes, graph: dict[str, list[str]]) -> None:
    """Send one request for the plan, one per step and one for the answer, as early as the graph allows."""
    head = {"Authorization": "Bearer sk-0123456789abcdef", "Content-Type": "application/json"}
    async with httpx.AsyncClient(timeout=60) as client:

        async def send() -> None:
            (await client.post(address, content=body, headers=head)).raise_for_status()

        async def step(name: str) -> None:
            await asyncio.gather(*(steps[needed] for needed in graph[name]))
            await send()

        await send()
        steps: dict[str, asyncio.Task[None]] = {}
        for name in graph:
            steps[name] = asyncio.create_task(step(name))
        await asyncio.gather(*steps.values())
        await send()


if __name__ == "__main__":
    asyncio.run(walk(sys.argv[1], Path(sys.argv[2]).read_bytes(), json.loads(Path(sys.argv[3]).read_text())))
