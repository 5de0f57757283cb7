"""`agent stats`: statistics of the queue, its workers and their containers."""

import asyncio
from typing import TYPE_CHECKING, cast

from cli.commands.tasks.queue_access import JsonOption, open_queue
from cli.pages.pages import print_json, print_lines
from cli.pages.task_pages import stats_page
from tooling.contract.json_codec import JsonObject, encode

if TYPE_CHECKING:
    from agent.service.containers.pool import ContainerRow
    from agent.service.task import QueueStats


def command(*, as_json: JsonOption = False) -> None:
    """Show how many tasks there are in each state, which workers run them, and the containers of executors."""
    stats, containers = asyncio.run(_read())
    if as_json:
        print_json({**cast(JsonObject, encode(stats)), "containers": encode(containers)})
        return
    print_lines(stats_page(stats, containers))


async def _read() -> "tuple[QueueStats, list[ContainerRow]]":
    from agent.service.containers.pool_view import PoolView
    from agent.service.workspaces.open_workspaces import open_workspace_store

    opened = open_queue()
    try:
        pool = PoolView(open_workspace_store(opened.settings, opened.environ), opened.environ)
        return await opened.service.stats(), await pool.rows()
    finally:
        await opened.service.close()
