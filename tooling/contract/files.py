"""The files of the workspace, as tools see them."""

from typing import Protocol

from tooling.contract.result import FileChange, ToolError


class Files(Protocol):
    """Reads and writes files of the workspace by path; safe against links that are swapped concurrently.

    Paths outside the workspace and files that usually hold secrets raise ToolError.
    """

    async def read_text(self, path: str) -> str:
        """Return the text of a file. Raises ToolError for directories, binary and very large files."""
        ...

    async def write_text(self, path: str, text: str) -> FileChange:
        """Create or replace a file; return the change in `ToolMeta.changes`, so that it is shown and can be undone."""
        ...


class NoFiles:
    """The files of a context outside of a call: every access is refused."""

    async def read_text(self, path: str) -> str:
        """Refuse."""
        raise ToolError("Files are available only inside a tool call.")

    async def write_text(self, path: str, text: str) -> FileChange:
        """Refuse."""
        raise ToolError("Files are available only inside a tool call.")
