"""The tool write_file: create or replace a file atomically."""

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
    """Arguments of write_file."""

    path: str
    content: str


class WriteFile(Tool[WriteFileParams]):
    """Creates or replaces a file inside the workspace."""

    params = WriteFileParams
    spec = ToolSpec(
        name="write_file",
        description="Create or overwrite a file; parent folders are created.",
        parameters=schema_of(WriteFileParams),
        effect="write",
    )

    def action(self, params: WriteFileParams, ctx: ExecCtx) -> Action:
        return Action(
            tool=self.spec.name,
            effect="write",
            subject=params.path,
            cwd=ctx.working_dir,
            preview=lambda: preview_diff(params.path, ctx, lambda before, name: encode_text(params.content, name)),
        )

    async def run(self, params: WriteFileParams, ctx: ExecCtx) -> ToolResult:
        """Write the file and report the change."""
        data = encode_text(params.content, params.path)

        def transform(before: bytes | None, display_path: str) -> bytes:
            _reject_masked_secrets(before, data, display_path)
            return data

        change = await asyncio.to_thread(change_file, params.path, ctx, transform, makes_folders=True)
        verb = "Created" if change.status == "added" else "Wrote"
        text = f"{verb} {change.path}: {len(data)} bytes, +{change.added_lines} -{change.deleted_lines} lines."
        return ToolResult(text, meta=ToolMeta(changes=(change,)))


def _reject_masked_secrets(before: bytes | None, after: bytes, display_path: str) -> None:
    """Raise ToolError if the model would overwrite a secret with the mask it saw in its place."""
    mask = MASK.encode()
    if before is not None and mask in after and mask not in before:
        raise ToolError(
            f"{display_path} contains a secret that you saw as {MASK}; change the rest of it with edit_file."
        )


def encode_text(text: str, display_path: str) -> bytes:
    """Encode text for storage; raise ToolError if it is not valid Unicode."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ToolError(
            f"The text for {display_path} contains an unpaired surrogate at {error.start} and cannot be stored."
        ) from error
