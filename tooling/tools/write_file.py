"""write_file: a whole file, made or replaced in one step."""

import asyncio

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolMeta, ToolResult
from tooling.contract.tool import Tool, ToolSpec
from tooling.files.change_file import change_file, preview_diff
from tooling.safety.secrets.redact import MASK


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFileParams:
    """Which file, and all it shall hold."""

    path: str
    content: str


class WriteFile(Tool[WriteFileParams]):
    """Creates or replaces a file inside the workspace."""

    params = WriteFileParams
    spec = ToolSpec(
        name="write_file",
        description="Create or overwrite a file; parent folders are made.",
        parameters=schema_of(WriteFileParams),
        effect="write",
    )

    def action(self, params: WriteFileParams, ctx: ExecCtx) -> Action:
        """Return the path that is about to be written."""
        return Action(
            tool=self.spec.name,
            effect="write",
            subject=params.path,
            cwd=ctx.working_dir,
            preview=lambda: preview_diff(params.path, ctx, lambda before, shown: encode_text(params.content, shown)),
        )

    async def run(self, params: WriteFileParams, ctx: ExecCtx) -> ToolResult:
        """Write it and report what changed."""
        data = encode_text(params.content, params.path)

        def decide(before: bytes | None, shown: str) -> bytes:
            _reject_masked_secrets(before, data, shown)
            return data

        change = await asyncio.to_thread(change_file, params.path, ctx, decide, makes_folders=True)
        verb = "Created" if change.status == "added" else "Wrote"
        text = f"{verb} {change.path}: {len(data)} bytes, +{change.added_lines} -{change.deleted_lines} lines."
        return ToolResult(text, meta=ToolMeta(changes=(change,)))


def _reject_masked_secrets(before: bytes | None, after: bytes, shown: str) -> None:
    """Keep a model that read a masked secret from writing the mask over it."""
    mask = MASK.encode()
    if before is not None and mask in after and mask not in before:
        raise ToolError(f"{shown} holds a secret that you saw as {MASK}; change the rest of it with edit_file.")


def encode_text(text: str, shown: str) -> bytes:
    """Return text as the bytes to store."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ToolError(
            f"The text for {shown} holds a half character at {error.start} and cannot be stored."
        ) from error
