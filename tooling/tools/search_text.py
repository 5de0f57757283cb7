"""The tool search_text: search files for a regular expression."""

import asyncio
import os
import stat
import time
from pathlib import Path
from typing import Annotated, NamedTuple

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolServices, ToolSpec
from tooling.files.resolve import ResolvedPath, stat_readable
from tooling.files.sensitive_files import is_sensitive_file
from tooling.files.workspace_paths import display_path, is_in_outputs
from tooling.output import GREP_TIMEOUT_MS
from tooling.tools.line_search import Search, SearchLine, parse_ripgrep_output, search_by_walking
from tooling.tools.ripgrep import Ripgrep
from tooling.tools.walk import MAX_ENTRIES

MAX_CONTEXT = 20
_MAX_COLUMNS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTextParams:
    """Arguments of search_text."""

    pattern: Annotated[str, "regular expression"]
    path: str = "."
    glob: Annotated[str | None, "only these files"] = None
    ignore_case: bool = False
    context: Annotated[int, "lines around each match"] = 0


class SearchText(Tool[SearchTextParams]):
    """Searches the contents of files inside the workspace."""

    params = SearchTextParams
    spec = ToolSpec(
        name="search_text",
        description="Search file contents; returns path:line: text.",
        parameters=schema_of(SearchTextParams),
        effect="read",
        timeout_ms=GREP_TIMEOUT_MS + 5000,
        output_chars=40_000,
    )

    def __init__(self, services: ToolServices) -> None:
        super().__init__(services)
        self._ripgrep = Ripgrep(services.runner)

    def action(self, params: SearchTextParams, ctx: ExecCtx) -> Action:
        return Action(tool=self.spec.name, effect="read", subject=params.path, cwd=ctx.working_dir)

    async def run(self, params: SearchTextParams, ctx: ExecCtx) -> ToolResult:
        """Return the matching lines; no match is a result, a failed search an error."""
        if not params.pattern:
            raise ToolError("The pattern is empty.")
        root = _SearchRoot.of(*await asyncio.to_thread(stat_readable, params.path, ctx), path=params.path)
        lines, is_complete = await self._search(params, root, ctx)
        found = [line for line in lines if not is_sensitive_file(root.folder / line.path)]
        if not found:
            return ToolResult(f"No matches for {params.pattern!r} in {params.path!r}.")
        return ToolResult(_format_lines(found, root.folder, ctx) + _more_notice(found, is_complete=is_complete))

    async def _search(
        self, params: SearchTextParams, root: "_SearchRoot", ctx: ExecCtx
    ) -> tuple[list[SearchLine], bool]:
        """Return the matching lines with their context, and whether they are complete."""
        context = min(max(params.context, 0), MAX_CONTEXT)
        args = _ripgrep_args(params, root.name, context)
        # Commands may see the outputs of the session under another path, or not at all.
        is_command = not is_in_outputs(root.folder, ctx)
        output = await self._ripgrep.run(args, glob=params.glob, cwd=root.folder, ctx=ctx) if is_command else None
        if output is not None:
            return parse_ripgrep_output(output.data), output.is_complete
        search = Search(
            pattern=params.pattern,
            glob=params.glob,
            ignore_case=params.ignore_case,
            context=context,
            deadline=time.monotonic() + GREP_TIMEOUT_MS / 1000,
        )
        return await asyncio.to_thread(search_by_walking, params.path, ctx, search)


class _SearchRoot(NamedTuple):
    """The folder to search, and the file in it or `.`."""

    folder: Path
    name: str

    @classmethod
    def of(cls, target: ResolvedPath, status: os.stat_result, *, path: str) -> "_SearchRoot":
        if stat.S_ISDIR(status.st_mode):
            return cls(target.path, ".")
        if stat.S_ISREG(status.st_mode):
            return cls(target.path.parent, target.path.name)
        raise ToolError(f"{path} is neither a file nor a directory.")


def _ripgrep_args(params: SearchTextParams, name: str, context: int) -> list[str]:
    args = ["--line-number", "--with-filename", "--no-heading", "--null", f"--context={context}"]
    args += [f"--max-columns={_MAX_COLUMNS}", "--max-columns-preview"]
    # A huge file is searched only if it is named.
    args += ["--max-filesize=20M"] if name == "." else []
    args += ["--ignore-case"] if params.ignore_case else []
    return [*args, "--", params.pattern, f"./{name}"]


def _format_lines(found: list[SearchLine], folder: Path, ctx: ExecCtx) -> str:
    names: dict[str, str] = {}
    lines: list[str] = []
    for line in found[:MAX_ENTRIES]:
        name = names.setdefault(line.path, display_path(folder / line.path, ctx))
        separator = ":" if line.is_match else "-"
        lines.append(f"{name}{separator}{line.number}{separator} {line.text[:_MAX_COLUMNS]}")
    return "\n".join(lines)


def _more_notice(found: list[SearchLine], *, is_complete: bool) -> str:
    """Return the true totals if not all lines are shown."""
    if len(found) <= MAX_ENTRIES:
        return ""
    matches, files = sum(line.is_match for line in found), len({line.path for line in found if line.is_match})
    shown = sum(line.is_match for line in found[:MAX_ENTRIES])
    total = f"{matches} matches in {files} files" if is_complete else f"more than {matches} matches"
    return f"\n[{shown} of {total}; narrow the pattern, the path or the glob]"
