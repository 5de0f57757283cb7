"""The `Files` port: what a tool of a plugin reads and writes with `ctx.files`."""

from pathlib import Path
from typing import Annotated

import pytest

from tests.tooling.tool_harness import NoUser, ToolHarness
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolMeta, ToolResult
from tooling.contract.tool import Tool, ToolServices, ToolSpec
from tooling.files.workspace_files import MAX_READ_BYTES, WorkspaceFiles
from tooling.finish import OutputFinisher
from tooling.invoke import Invoker
from tooling.jobs import BackgroundJobs
from tooling.registry import ToolRegistry
from tooling.safety.secrets.redact import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperParams:
    path: Annotated[str, "a text file"]


class Upper(Tool[UpperParams]):
    """Writes a file in upper case, as a plugin would."""

    params = UpperParams
    spec = ToolSpec(name="upper", description="Upper.", parameters=schema_of(UpperParams), effect="write")

    async def run(self, params: UpperParams, ctx: ExecCtx) -> ToolResult:
        text = await ctx.files.read_text(params.path)
        change = await ctx.files.write_text(params.path, text.upper())
        return ToolResult("done", meta=ToolMeta(changes=(change,)))


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path)


async def call_upper(harness: ToolHarness, path: str) -> ToolResult:
    runner = harness.executor
    services = ToolServices(runner=runner, asker=NoUser(), jobs=BackgroundJobs(runner))  # type: ignore[arg-type]
    invoker = Invoker(registry=ToolRegistry((Upper(services),)), interceptors=(), finisher=OutputFinisher(Redactor()))
    return await invoker.invoke("upper", {"path": path}, harness.ctx())


async def test_a_tool_changes_a_file_and_reports_the_change(harness: ToolHarness) -> None:
    harness.write("notes.txt", "hello\n")
    result = await call_upper(harness, "notes.txt")
    assert (result.is_ok, (harness.root / "notes.txt").read_text()) == (True, "HELLO\n")
    (change,) = result.meta.changes
    assert (change.path, change.added_lines, change.deleted_lines) == ("notes.txt", 1, 1)


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/passwd", ".env", "link", ".", "missing.txt", "binary"])
async def test_nothing_but_text_files_of_the_workspace_is_read(harness: ToolHarness, path: str) -> None:
    (harness.root.parent / "outside.txt").write_text("secret")
    (harness.root / "link").symlink_to("../outside.txt")
    harness.write(".env", "KEY=1")
    harness.write("binary", b"\0\1")
    result = await call_upper(harness, path)
    assert not result.is_ok
    assert (harness.root.parent / "outside.txt").read_text() == "secret"


async def test_a_very_large_file_is_refused(harness: ToolHarness) -> None:
    with (harness.root / "large.txt").open("wb") as file:
        file.write(b"x" * (MAX_READ_BYTES + 1))
    with pytest.raises(ToolError, match="larger than"):
        await WorkspaceFiles(harness.ctx()).read_text("large.txt")


async def test_outside_of_a_call_there_are_no_files(harness: ToolHarness) -> None:
    with pytest.raises(ToolError, match="inside a tool call"):
        await harness.ctx().files.read_text("notes.txt")
