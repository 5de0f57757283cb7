"""The tool delete_file: delete one file, after approval."""

import asyncio

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolMeta, ToolResult
from tooling.contract.tool import Tool, ToolSpec
from tooling.files.change_file import change_file


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFileParams:
    """Arguments of delete_file."""

    path: str


class DeleteFile(Tool[DeleteFileParams]):
    """Deletes a file inside the workspace."""

    params = DeleteFileParams
    spec = ToolSpec(
        name="delete_file",
        description="Delete one file.",
        parameters=schema_of(DeleteFileParams),
        effect="write",
        requires_approval=True,
    )

    def action(self, params: DeleteFileParams, ctx: ExecCtx) -> Action:
        path = params.path
        return Action(tool=self.spec.name, effect="write", subject=path, cwd=ctx.working_dir, deletes=(path,))

    async def run(self, params: DeleteFileParams, ctx: ExecCtx) -> ToolResult:
        """Delete the file; its content is saved for undo."""
        change = await asyncio.to_thread(change_file, params.path, ctx, _delete)
        return ToolResult(f"Deleted {change.path}.", meta=ToolMeta(changes=(change,)))


def _delete(before: bytes | None, display_path: str) -> None:
    if before is None:
        raise ToolError(f"{display_path} does not exist.")
