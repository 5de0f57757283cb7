"""The tool list_directory: list a folder."""

import asyncio
import os
import stat

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolSpec
from tooling.files.resolve import ResolvedPath, open_to_read
from tooling.files.sensitive_files import is_sensitive_file
from tooling.tools.walk import MAX_ENTRIES, SKIPPED_DIRS


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDirectoryParams:
    """Arguments of list_directory."""

    path: str = "."


class ListDirectory(Tool[ListDirectoryParams]):
    """Lists a folder inside the workspace."""

    params = ListDirectoryParams
    spec = ToolSpec(
        name="list_directory",
        description="List a folder.",
        parameters=schema_of(ListDirectoryParams),
        effect="read",
        output_chars=20_000,
    )

    def action(self, params: ListDirectoryParams, ctx: ExecCtx) -> Action:
        return Action(tool=self.spec.name, effect="read", subject=params.path, cwd=ctx.working_dir)

    async def run(self, params: ListDirectoryParams, ctx: ExecCtx) -> ToolResult:
        """Return one entry per line, folders first."""
        lines = await asyncio.to_thread(_list_entries, params.path, ctx)
        return ToolResult("\n".join(lines) or "(empty directory)")


def _list_entries(path: str, ctx: ExecCtx) -> list[str]:
    # Without O_DIRECTORY, so that a file can be distinguished from a path that leads through a file.
    fd, folder = open_to_read(path, ctx, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            raise ToolError(f"{folder.display_path} is a file; use read_file.")
        with os.scandir(fd) as found:
            entries = [entry for entry in found if entry.name not in SKIPPED_DIRS]
        entries.sort(key=lambda entry: (not entry.is_dir(follow_symlinks=False), entry.name))
        lines = [_format_entry(entry, fd, folder) for entry in entries[:MAX_ENTRIES]]
    except OSError as error:
        raise ToolError(f"{folder.display_path} cannot be listed: {error.strerror}.") from error
    finally:
        os.close(fd)
    if len(entries) > MAX_ENTRIES:
        lines.append(f"[{MAX_ENTRIES} of {len(entries)} entries; use find_files with a pattern for the rest]")
    return lines


def _format_entry(entry: "os.DirEntry[str]", fd: int, folder: ResolvedPath) -> str:
    try:
        if entry.is_symlink():
            return f"{entry.name} -> {os.readlink(entry.name, dir_fd=fd)}"
        if entry.is_dir(follow_symlinks=False):
            return f"{entry.name}/"
        if is_sensitive_file(folder.path / entry.name):
            return f"{entry.name} (contains secrets: not available)"
        return f"{entry.name} ({entry.stat(follow_symlinks=False).st_size} bytes)"
    except OSError:
        # The entry was removed in the meantime.
        return entry.name
