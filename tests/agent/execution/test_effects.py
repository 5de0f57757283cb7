"""What a call does elsewhere is recorded before it happens, and not repeated unasked."""

from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import pytest

from agent.execution.effects import EffectLedger
from agent.protocol.events import EffectRecorded
from agent.vocabulary.effects import EffectFold, EffectRecord
from agent.vocabulary.unfinished import UNKNOWN_EFFECT
from tests.tooling.test_registry import SERVICES
from tests.tooling.tool_harness import NoUser
from tooling.contract.context import ExecCtx
from tooling.contract.interceptor import PendingCall
from tooling.contract.tool import AnyTool
from tooling.mcp.connection import ServerConnection
from tooling.mcp.listing import OfferedTool
from tooling.mcp.listing_store import ListingStore
from tooling.mcp.search import CallMcpTool, McpToolIndex
from tooling.mcp.servers import parse_server
from tooling.mcp.tools import McpTool
from tooling.tools.schedule_task import ScheduleTask

ISSUE = {"title": "it is broken"}
LATER = {"action": "add", "type": "command", "content": "make", "delay_minutes": 5}


class Recorded:
    """A channel that keeps what is published."""

    def __init__(self) -> None:
        self.events: list[EffectRecorded] = []

    async def publish(self, event: EffectRecorded, **where: object) -> None:
        self.events.append(event)


@pytest.fixture
def mail(tmp_path: Path) -> McpTool:
    store = ListingStore(tmp_path)
    connection = ServerConnection(parse_server("mail", {"command": "mail"}), None, store)  # type: ignore[arg-type]
    offered = OfferedTool(name="send", description="Send a mail.", parameters={}, digest="d")
    return McpTool(SERVICES, connection, offered, store)


def pending(tool: AnyTool, args: Mapping[str, object], folder: Path) -> PendingCall:
    ctx = ExecCtx(user_id=UUID(int=1), task_id=UUID(int=2), working_dir=folder, step_id="s1", tool_id="c1")
    params = tool.parse_arguments(dict(args))
    return PendingCall(tool=tool, params=params, action=tool.action(params, ctx), ctx=ctx)


def ledger(channel: Recorded, earlier: Mapping[str, EffectRecord] | None = None) -> EffectLedger:
    return EffectLedger(channel=channel, asker=NoUser(), backend="sandbox", lineage="run-1", earlier=earlier)  # type: ignore[arg-type]


async def test_a_call_of_a_server_that_may_have_been_made_is_not_made_again(mail: McpTool, tmp_path: Path) -> None:
    before, after = Recorded(), Recorded()
    assert await ledger(before).before(pending(mail, ISSUE, tmp_path)) is None
    assert [(one.kind, one.status, one.safe) for one in before.events] == [("message", "started", False)]
    fold = EffectFold()
    fold.record(before.events[0], run_id="run-1", step_id="s1", ts="")
    # By a search it is the same call.
    search = CallMcpTool(SERVICES, McpToolIndex((mail,), (), lambda *given: ()))
    for call in (
        pending(mail, ISSUE, tmp_path),
        pending(search, {"tool": mail.spec.name, "arguments": ISSUE}, tmp_path),
    ):
        refused = await ledger(after, fold.records).before(call)
        assert refused is not None and refused.content == UNKNOWN_EFFECT
    assert after.events == []
    assert await ledger(after, fold.records).before(pending(mail, {"title": "another"}, tmp_path)) is None


async def test_what_is_scheduled_is_an_effect(tmp_path: Path) -> None:
    channel = Recorded()
    await ledger(channel).before(pending(ScheduleTask(SERVICES), LATER, tmp_path))
    await ledger(channel).before(pending(ScheduleTask(SERVICES), {"action": "list"}, tmp_path))
    assert [one.target for one in channel.events] == ["make"]
