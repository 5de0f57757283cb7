"""The tool edit_file: replace exact texts, or report the most similar lines."""

import asyncio
from typing import Annotated

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolMeta, ToolResult
from tooling.contract.tool import Tool, ToolSpec
from tooling.files.change_file import as_text, change_file, preview_diff
from tooling.files.regular_file import is_binary
from tooling.files.resolve import missing_file
from tooling.safety.secrets.masked_text import MaskedText
from tooling.safety.secrets.nearest_match import describe_nearest_match
from tooling.safety.secrets.redact import MASK
from tooling.tools.write_file import encode_text

MASKED_OLD_TEXT = (
    f"{MASK} stands for a secret that you cannot see: copy its line exactly, or edit the lines around it. "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """One text and what replaces it."""

    old_text: str
    new_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditFileParams:
    """Arguments of edit_file."""

    path: str
    old_text: Annotated[str, "exact text, unique in the file"] = ""
    new_text: str = ""
    replace_all: bool = False
    edits: Annotated[tuple[Replacement, ...], "several instead of one"] = ()

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        """All replacements, in order."""
        if self.edits and not self.old_text:
            return self.edits
        return (Replacement(old_text=self.old_text, new_text=self.new_text), *self.edits)


class EditFile(Tool[EditFileParams]):
    """Replaces exact texts in a file inside the workspace."""

    params = EditFileParams
    spec = ToolSpec(
        name="edit_file",
        description="Replace old_text with new_text in a file.",
        parameters=schema_of(EditFileParams),
        effect="write",
    )

    def action(self, params: EditFileParams, ctx: ExecCtx) -> Action:
        return Action(
            tool=self.spec.name,
            effect="write",
            subject=params.path,
            cwd=ctx.working_dir,
            preview=lambda: preview_diff(
                params.path, ctx, lambda before, name: self._edit(before, params, name)[0], self._services.secrets
            ),
        )

    async def run(self, params: EditFileParams, ctx: ExecCtx) -> ToolResult:
        """Replace the texts and report the change."""
        counts: list[int] = []

        def transform(before: bytes | None, display_path: str) -> bytes:
            data, count = self._edit(before, params, display_path)
            counts.append(count)
            return data

        change = await asyncio.to_thread(change_file, params.path, ctx, transform, secrets=self._services.secrets)
        places = "1 place" if counts == [1] else f"{counts[-1]} places"
        text = f"Edited {change.path} in {places}: +{change.added_lines} -{change.deleted_lines} lines."
        return ToolResult(text, meta=ToolMeta(changes=(change,)))

    def _edit(self, data: bytes | None, params: EditFileParams, display_path: str) -> tuple[bytes, int]:
        """Return the new content and the number of replacements."""
        before = as_text(data)
        if data is None or before is None:
            raise ToolError(missing_file(display_path))
        if is_binary(data):
            raise ToolError(f"{display_path} is a binary file; change it with a command.")
        file = MaskedText.of(before, self._services.secrets)
        total, count = 0, len(params.replacements)
        for number, replacement in enumerate(params.replacements, 1):
            try:
                file, places = self._replace(file, replacement, display_path, is_for_all=params.replace_all)
            except ToolError as error:
                which = f"Edit {number} of {count} failed, nothing was changed: " if count > 1 else ""
                raise ToolError(f"{which}{error}") from error
            total += places
        return encode_text(file.real, display_path), total

    def _replace(
        self, file: MaskedText, replacement: Replacement, display_path: str, *, is_for_all: bool
    ) -> tuple[MaskedText, int]:
        old, new, places = self._find(file, replacement, display_path)
        if len(places) > 1 and not is_for_all:
            raise ToolError(
                f"old_text occurs {len(places)} times in {display_path}; "
                "add surrounding lines to make it unique, or set replace_all."
            )
        if not file.values and MASK not in new.text:
            return MaskedText(text=file.text.replace(old.text, new.text)), len(places)
        for start in reversed(places):
            file = file.replace(start, start + len(old.text), new, display_path)
        return file, len(places)

    def _find(
        self, file: MaskedText, replacement: Replacement, display_path: str
    ) -> tuple[MaskedText, MaskedText, list[int]]:
        """Return the old and new text with the line endings of the file, and where the old one is."""
        old, new, secrets = replacement.old_text, replacement.new_text, self._services.secrets
        if not old:
            raise ToolError("old_text is empty; use write_file to create or replace a whole file.")
        if old == new:
            raise ToolError("old_text and new_text are the same; there is nothing to change.")
        # Models write bare line feeds; the file keeps its own line endings.
        forms = [(old, new), (_with_crlf(old), _with_crlf(new))] if "\r\n" in file.text else [(old, new)]
        for old_form, new_form in forms:
            masked = MaskedText.of(old_form, secrets)
            if places := file.find_all(masked):
                return masked, MaskedText.of(new_form, secrets), places
        masked_note = MASKED_OLD_TEXT if MASK in old else ""
        nearest = describe_nearest_match(file, old)
        raise ToolError(f"old_text was not found in {display_path}. {masked_note}{nearest}")


def _with_crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")
