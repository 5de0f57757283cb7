"""The tool send_file: attach a file of the workspace to the answer."""

import asyncio
import stat
from typing import Annotated

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolMeta, ToolResult
from tooling.contract.tool import Tool, ToolSpec
from tooling.files.resolve import stat_readable
from tooling.files.sensitive_files import is_sensitive_file
from tooling.files.workspace_paths import display_path

MAX_BYTES = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SendFileParams:
    """Arguments of send_file."""

    path: str
    caption: Annotated[str, "what it is"] = ""


class SendFile(Tool[SendFileParams]):
    """Makes a file an artifact of the run."""

    params = SendFileParams
    spec = ToolSpec(
        name="send_file",
        description="Hand a file to the user with the answer.",
        parameters=schema_of(SendFileParams),
        effect="read",
    )

    def action(self, params: SendFileParams, ctx: ExecCtx) -> Action:
        return Action(tool=self.spec.name, effect="read", subject=params.path, cwd=ctx.working_dir)

    async def run(self, params: SendFileParams, ctx: ExecCtx) -> ToolResult:
        """Check the file and add it to the artifacts; it stays where it is."""
        resolved, info = await asyncio.to_thread(stat_readable, params.path, ctx)
        name = display_path(resolved.path, ctx)
        if not stat.S_ISREG(info.st_mode):
            raise ToolError(f"{name} is not a file.")
        if is_sensitive_file(name):
            raise ToolError(f"{name} usually holds secrets and is not sent.")
        if not 0 < info.st_size <= MAX_BYTES:
            limit = f"larger than {MAX_BYTES // 1_000_000} MB" if info.st_size else "empty"
            raise ToolError(f"{name} is {limit} and is not sent.")
        text = f"{name} ({info.st_size:,} bytes) is given to the user with the answer."
        shown = f"{name}: {params.caption}" if params.caption else name
        return ToolResult(text, display=shown, meta=ToolMeta(artifacts=(name,)))
