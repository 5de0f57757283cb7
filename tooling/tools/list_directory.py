"""list_directory: what is in a folder."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.shape import schema_of
from tooling.contract.tool import Tool, ToolSpec
from tooling.safety.paths import readable_path, shown_path
from tooling.tools.walk import MAX_ENTRIES, SKIPPED_DIRS


@dataclass(frozen=True, slots=True, kw_only=True)
class ListDirectoryParams:
    """Which folder."""

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
        """Return the folder that is about to be listed."""
        return Action(tool=self.spec.name, effect="read", subject=params.path, cwd=ctx.working_dir)

    async def run(self, params: ListDirectoryParams, ctx: ExecCtx) -> ToolResult:
        """Return one entry a line, folders first."""
        path = readable_path(params.path, ctx)
        lines = await asyncio.to_thread(_entries, path, shown_path(path, ctx))
        return ToolResult("\n".join(lines) or "(empty directory)")


def _entries(path: Path, shown: str) -> list[str]:
    try:
        with os.scandir(path) as found:
            entries = [entry for entry in found if entry.name not in SKIPPED_DIRS]
    except FileNotFoundError:
        raise ToolError(f"{shown} does not exist.") from None
    except NotADirectoryError:
        raise ToolError(f"{shown} is a file; use read_file.") from None
    except OSError as error:
        raise ToolError(f"{shown} cannot be listed: {error.strerror}.") from error
    entries.sort(key=lambda entry: (not entry.is_dir(follow_symlinks=False), entry.name))
    lines = [_line(entry) for entry in entries[:MAX_ENTRIES]]
    if len(entries) > MAX_ENTRIES:
        lines.append(f"[{MAX_ENTRIES} of {len(entries)} entries; use find_files with a pattern for the others]")
    return lines


def _line(entry: "os.DirEntry[str]") -> str:
    try:
        if entry.is_symlink():
            return f"{entry.name} -> {os.readlink(entry.path)}"  # noqa: PTH115 (keeps the text of the link)
        if entry.is_dir(follow_symlinks=False):
            return f"{entry.name}/"
        return f"{entry.name} ({entry.stat(follow_symlinks=False).st_size} bytes)"
    except OSError:
        # It vanished while we looked.
        return entry.name
