"""The tool write_file: create or replace a file atomically."""

import asyncio

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolMeta, ToolResult
from tooling.contract.tool import Tool, ToolSpec
from tooling.files.change_file import as_text, change_file, preview_diff
from tooling.safety.secrets.masked_text import MaskedText
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
            preview=lambda: preview_diff(
                params.path, ctx, lambda before, name: self._new_content(before, params, name), self._services.secrets
            ),
        )

    async def run(self, params: WriteFileParams, ctx: ExecCtx) -> ToolResult:
        """Write the file and report the change."""
        sizes: list[int] = []

        def transform(before: bytes | None, display_path: str) -> bytes:
            data = self._new_content(before, params, display_path)
            sizes.append(len(data))
            return data

        change = await asyncio.to_thread(
            change_file, params.path, ctx, transform, makes_folders=True, secrets=self._services.secrets
        )
        verb = "Created" if change.status == "added" else "Wrote"
        text = f"{verb} {change.path}: {sizes[-1]} bytes, +{change.added_lines} -{change.deleted_lines} lines."
        return ToolResult(text, meta=ToolMeta(changes=(change,)))

    def _new_content(self, before: bytes | None, params: WriteFileParams, display_path: str) -> bytes:
        """Return the new content; a mask in it keeps the secret that the model saw as that mask."""
        old = as_text(before)
        if old is None or MASK not in params.content:
            return encode_text(params.content, display_path)
        secrets = self._services.secrets
        masked = MaskedText.of(old, secrets)
        new = masked.replace(0, len(masked.text), MaskedText.of(params.content, secrets), display_path)
        return encode_text(new.real, display_path)


def encode_text(text: str, display_path: str) -> bytes:
    """Encode text for storage; raise ToolError if it is not valid Unicode."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ToolError(
            f"The text for {display_path} contains an unpaired surrogate at {error.start} and cannot be stored."
        ) from error
