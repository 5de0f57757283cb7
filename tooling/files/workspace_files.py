"""The `Files` port of tools: reads and writes by descriptor beneath the workspace."""

import asyncio

from tooling.contract.context import ExecCtx
from tooling.contract.result import FileChange, ToolError
from tooling.files.change_file import change_file
from tooling.files.regular_file import open_text

MAX_READ_BYTES = 16_000_000


class WorkspaceFiles:
    """Files of the workspace of one call."""

    def __init__(self, ctx: ExecCtx) -> None:
        self._ctx = ctx

    async def read_text(self, path: str) -> str:
        """Return the text of a file. Raises ToolError for directories, binary and very large files."""
        return await asyncio.to_thread(self._read_text, path)

    async def write_text(self, path: str, text: str) -> FileChange:
        """Create or replace a file and return the change."""
        data = text.encode("utf-8", "surrogateescape")
        return await asyncio.to_thread(
            change_file, path, self._ctx, lambda before, display_path: data, makes_folders=True
        )

    def _read_text(self, path: str) -> str:
        file, resolved = open_text(path, self._ctx)
        with file:
            data = file.read(MAX_READ_BYTES + 1)
        if len(data) > MAX_READ_BYTES:
            raise ToolError(f"{resolved.display_path} is larger than {MAX_READ_BYTES:,} bytes.")
        return data.decode("utf-8", "surrogateescape")
