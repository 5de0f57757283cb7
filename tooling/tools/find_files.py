"""The tool find_files: find files by glob."""

import asyncio
import os
import stat
import time
from pathlib import PurePath
from typing import Annotated

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolServices, ToolSpec
from tooling.files.resolve import ResolvedPath, open_to_read, stat_readable
from tooling.files.sensitive_files import is_sensitive_file
from tooling.files.workspace_paths import display_path, is_in_outputs
from tooling.output import GREP_TIMEOUT_MS
from tooling.tools.ripgrep import Ripgrep
from tooling.tools.walk import MAX_ENTRIES, glob_regex, path_order, walk_files


@dataclass(frozen=True, slots=True, kw_only=True)
class FindFilesParams:
    """Arguments of find_files."""

    pattern: Annotated[str, "glob: *.py, src/**/test_*"]
    path: str = "."


class FindFiles(Tool[FindFilesParams]):
    """Finds files inside the workspace by name."""

    params = FindFilesParams
    spec = ToolSpec(
        name="find_files",
        description="Find files by glob.",
        parameters=schema_of(FindFilesParams),
        effect="read",
        timeout_ms=GREP_TIMEOUT_MS + 5000,
        output_chars=40_000,
    )

    def __init__(self, services: ToolServices) -> None:
        super().__init__(services)
        self._ripgrep = Ripgrep(services.runner)

    def action(self, params: FindFilesParams, ctx: ExecCtx) -> Action:
        return Action(tool=self.spec.name, effect="read", subject=params.path, cwd=ctx.working_dir)

    async def run(self, params: FindFilesParams, ctx: ExecCtx) -> ToolResult:
        """Return one path per line, with a notice if there are more."""
        if ".." in PurePath(params.pattern).parts or not params.pattern:
            raise ToolError("The pattern must not be empty or contain '..'; give the folder as path.")
        folder, status = await asyncio.to_thread(stat_readable, params.path, ctx)
        if not stat.S_ISDIR(status.st_mode):
            raise ToolError(f"{params.path} is not a directory.")
        names, is_complete = await self._find_names(params, folder, ctx)
        paths = [path for path in (folder.path / name for name in names) if not is_sensitive_file(path)]
        lines = [display_path(path, ctx) for path in paths[:MAX_ENTRIES]]
        if len(paths) > MAX_ENTRIES:
            total = len(paths) if is_complete else f"more than {len(paths)}"
            lines.append(f"[{MAX_ENTRIES} of {total} files; narrow the pattern or the path]")
        return ToolResult("\n".join(lines) or f"No files match {params.pattern!r} in {params.path!r}.")

    async def _find_names(self, params: FindFilesParams, folder: ResolvedPath, ctx: ExecCtx) -> tuple[list[str], bool]:
        """Return the names beneath the folder, and whether they are complete."""
        # Commands may see the outputs of the session under another path, or not at all.
        output = (
            None
            if is_in_outputs(folder.path, ctx)
            else await self._ripgrep.run(("--files", "--null"), glob=params.pattern, cwd=folder.path, ctx=ctx)
        )
        if output is None:
            return await asyncio.to_thread(_find_by_walking, params, ctx), True
        names = [os.fsdecode(name) for name in output.data.split(b"\0") if name]
        return sorted(names, key=path_order), output.is_complete


def _find_by_walking(params: FindFilesParams, ctx: ExecCtx) -> list[str]:
    matches = glob_regex(params.pattern).match
    deadline = time.monotonic() + GREP_TIMEOUT_MS / 1000
    folder, _ = open_to_read(params.path, ctx, os.O_RDONLY | os.O_DIRECTORY)
    try:
        found = (name for name in walk_files(folder, deadline=deadline) if matches(name))
        return [name for name in found if not is_sensitive_file(name)]
    finally:
        os.close(folder)
