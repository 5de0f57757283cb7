"""The tool apply_patch: change, add, move and delete several files at once, all or none."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import FileChange, ToolError, ToolMeta, ToolResult
from tooling.contract.tool import Tool, ToolServices, ToolSpec
from tooling.files.change_file import as_text
from tooling.files.regular_file import is_binary
from tooling.files.resolve import missing_file
from tooling.tools.write_file import encode_text

if TYPE_CHECKING:
    from tooling.files.file_batch import FileBatch
    from tooling.patch.file_patch import FilePatch


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyPatchParams:
    """Arguments of apply_patch."""

    patch: Annotated[str, "*** Begin Patch ... *** End Patch, or a unified diff"]


class ApplyPatch(Tool[ApplyPatchParams]):
    """Applies a patch to files inside the workspace."""

    params = ApplyPatchParams
    spec = ToolSpec(
        name="apply_patch",
        description="Change several files at once, all or none.",
        parameters=schema_of(ApplyPatchParams),
        effect="write",
    )

    def action(self, params: ApplyPatchParams, ctx: ExecCtx) -> Action:
        patches = parse_patch(params.patch)
        paths = dict.fromkeys(path for patch in patches for path in (patch.path, patch.move_to) if path)
        return Action(
            tool=self.spec.name,
            effect="write",
            subject=", ".join(paths),
            cwd=ctx.working_dir,
            paths=tuple(paths),
            deletes=tuple(patch.path for patch in patches if patch.kind == "delete"),
            preview=lambda: self._preview(patches, ctx),
        )

    async def run(self, params: ApplyPatchParams, ctx: ExecCtx) -> ToolResult:
        """Apply the patch and report every change."""
        changes = await asyncio.to_thread(self._apply, parse_patch(params.patch), ctx)
        lines = [_describe(change) for change in changes]
        return ToolResult("\n".join(lines) or "The files are already like this.", meta=ToolMeta(changes=changes))

    def _apply(self, patches: "list[FilePatch]", ctx: ExecCtx) -> tuple[FileChange, ...]:
        return self._batch(patches, ctx).commit()

    def _preview(self, patches: "list[FilePatch]", ctx: ExecCtx) -> str:
        """Return the diff of all files; empty if the patch would fail."""
        try:
            return self._batch(patches, ctx).diff()
        except ToolError:
            return ""

    def _batch(self, patches: "list[FilePatch]", ctx: ExecCtx) -> "FileBatch":
        from tooling.files.file_batch import FileBatch

        batch = FileBatch(ctx, self._services.secrets)
        for patch in patches:
            _add_patch(batch, patch, self._services)
        return batch


def parse_patch(text: str) -> "list[FilePatch]":
    """Parse a patch of either form; raises PatchInvalid."""
    from tooling.patch.file_patch import EXPECTED_FORM, PatchInvalid
    from tooling.patch.unified import is_unified, parse_unified
    from tooling.patch.v4a import is_v4a, parse_v4a

    lines = text.removesuffix("\n").split("\n")
    if is_v4a(lines):
        patches = parse_v4a(lines)
    elif is_unified(lines):
        patches = parse_unified(lines)
    else:
        patches = []
    if not patches:
        raise PatchInvalid(f"This is not a patch. {EXPECTED_FORM}")
    return patches


def _add_patch(batch: "FileBatch", patch: "FilePatch", services: ToolServices) -> None:
    """Add the change of one file to the batch."""
    from tooling.patch.hunks import apply_hunks

    before = batch.read(patch.path)
    if patch.kind == "add":
        _check_absent(batch, patch.path)
        batch.write(patch.path, encode_text(patch.content, patch.path))
        return
    if before is None:
        raise ToolError(f"{missing_file(patch.path)} Nothing was changed.")
    if patch.kind == "delete":
        batch.write(patch.path, None)
        return
    if is_binary(before):
        raise ToolError(f"{patch.path} is a binary file; change it with a command.")
    after = encode_text(apply_hunks(as_text(before) or "", patch, services.secrets), patch.path)
    if patch.move_to is None:
        batch.write(patch.path, after)
        return
    _check_absent(batch, patch.move_to)
    batch.write(patch.move_to, after, like=patch.path)
    batch.write(patch.path, None)


def _check_absent(batch: "FileBatch", path: str) -> None:
    if batch.read(path) is not None:
        raise ToolError(f"{path} exists already; update it instead. Nothing was changed.")


def _describe(change: FileChange) -> str:
    verb = {"added": "Added", "modified": "Updated", "deleted": "Deleted"}[change.status]
    return f"{verb} {change.path}: +{change.added_lines} -{change.deleted_lines} lines."
