"""Sanitize, redact and trim tool results before the model, the user and the log see them."""

import asyncio
import dataclasses
import hashlib
import itertools
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tooling.contract.context import ExecCtx
from tooling.contract.interceptor import Interceptor, PendingCall
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.contract.result import FileChange, ToolMeta, ToolResult
from tooling.output import MIN_OUTPUT_CHARS, TrimLengths, sanitize_output, trim_output
from tooling.safety.secrets.redact import MASK, Redactor

SECRET_WRITTEN = "{path} now contains what looks like a secret: {names}"
_UNNAMED = "a value without a name"
# The name before a value: KEY=…, "key": "…", key: …, Authorization: Bearer …
_LABEL = lazy_pattern(r"([A-Za-z_][\w.-]*)[\"']?\s*(?:[:=]|=>|:=)\s*(?:Bearer\s+|Basic\s+)?[\"'`]?$")


_UNSAFE_IN_NAME = lazy_pattern(r"[^A-Za-z0-9_.-]+")
_MAX_PART_CHARS = 48
NOT_SAVED = "the rest was not saved"


class OutputFinisher:
    """Sanitizes, redacts and trims results; saves the full text of those it trims."""

    def __init__(self, redactor: Redactor, trim_chars: Callable[[], int] = lambda: MIN_OUTPUT_CHARS) -> None:
        self._redactor = redactor
        # A function: the context size of a model is looked up with the first long output, not at startup.
        self._trim_chars = trim_chars

    async def finish(self, result: ToolResult, ctx: ExecCtx, *, output_chars: int | None = None) -> ToolResult:
        """Return the result in the form that may be shown; `output_chars` overrides the default length limit."""
        text = self._clean(result.content)
        meta = self._clean_meta(result.meta)
        lengths = TrimLengths.for_limit(self._trim_chars() if output_chars is None else output_chars)
        if len(text) > lengths.limit or meta.dropped_bytes:
            path, lines = await self._save_output(text, meta, ctx)
            text = trim_output(
                text,
                lengths,
                hint=f"full output: {path}" if path else NOT_SAVED,
                total_bytes=(meta.total_bytes or 0) if meta.dropped_bytes else 0,
                total_lines=lines,
            )
            meta = dataclasses.replace(meta, output_path=path)
        if meta.full_text is not None:
            meta = await self._save_full_text(meta)
        display = None if result.display is None else trim_output(self._clean(result.display), lengths)
        if meta is result.meta and (text, display) == (result.content, result.display):
            return result
        return dataclasses.replace(result, content=text, display=display, meta=meta)

    async def _save_full_text(self, meta: ToolMeta) -> ToolMeta:
        """Redact the full text of a partly shown result and write it to the output file reserved by the tool."""
        text, path = meta.full_text or "", meta.output_path
        try:
            if path is not None:
                await asyncio.to_thread(self._write_redacted, Path(path), text)
        except OSError:
            # The disk may be full; the shown part is still useful.
            pass
        return dataclasses.replace(meta, full_text=None)

    def _write_redacted(self, path: Path, text: str) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="replace", newline="") as file:
            for chunk in self._redactor.redact_chunks(text):
                file.write(sanitize_output(chunk))

    def _clean(self, text: str) -> str:
        return self._redactor.redact(sanitize_output(text))

    def _clean_meta(self, meta: ToolMeta) -> ToolMeta:
        if not meta.changes:
            return meta
        changes: list[FileChange] = [
            dataclasses.replace(change, diff=self._clean(change.diff)) if change.diff else change
            for change in meta.changes
        ]
        return dataclasses.replace(meta, changes=tuple(changes))

    async def _save_output(self, text: str, meta: ToolMeta, ctx: ExecCtx) -> tuple[str | None, int | None]:
        """Save the full output; return its path and, if the command runner wrote all of it, its number of lines."""
        try:
            if meta.output_path is not None:
                # The command runner spools raw output.
                lines = await asyncio.to_thread(_count_saved_lines, Path(meta.output_path), meta.total_bytes)
                await asyncio.to_thread(self._redactor.redact_file, Path(meta.output_path))
                return meta.output_path, lines
            target = output_file(ctx)
            if target is None:
                return None, None
            await asyncio.to_thread(_write_text, target, text)
            return str(target), None
        except OSError:
            return None, None


def _count_saved_lines(path: Path, total_bytes: int | None) -> int | None:
    """Return the number of lines of an output, or None if not all of it was saved."""
    lines, size, last = 0, 0, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(1_000_000):
            lines += chunk.count(b"\n")
            size += len(chunk)
            last = chunk[-1:]
    return lines + (last != b"\n") if size == total_bytes else None


def output_file(ctx: ExecCtx) -> Path | None:
    """Return an unused path for the full output of this call, or None if the run saves no outputs."""
    if ctx.outputs_dir is None:
        return None
    stem = output_stem(ctx.step_id, ctx.attempt, ctx.call_id)
    path = ctx.outputs_dir / f"{stem}.txt"
    if not path.exists():
        return path
    with os.scandir(ctx.outputs_dir) as entries:
        taken = frozenset(entry.name for entry in entries)
    names = (f"{stem}-{number}.txt" for number in itertools.count(2))
    return ctx.outputs_dir / next(name for name in names if name not in taken)


def output_stem(step_id: str, attempt: int, call_id: str = "") -> str:
    """Return the file name prefix for the outputs of a step, or of one of its calls."""
    return "-".join(_safe_name_part(part) for part in (step_id, str(attempt), call_id) if part)


def _safe_name_part(part: str) -> str:
    """Make a string safe for a file name; a changed one gets a hash, so that different strings stay different."""
    safe = _UNSAFE_IN_NAME.sub("_", part).lstrip(".")[:_MAX_PART_CHARS]
    return safe if safe == part else f"{safe}{hashlib.sha256(part.encode('utf-8', 'replace')).hexdigest()[:8]}"


def reserve_output(ctx: ExecCtx) -> Path | None:
    """Create an empty file for the full output of this call and return its path, or None if that fails."""
    path = output_file(ctx)
    try:
        if path is not None:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError:
        return None
    return path


def _write_text(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8", newline="") as file:
        file.write(text)


class SecretNotice(Interceptor):
    """Warns the user when a file gets a secret that was not in it before."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn

    async def after(self, call: PendingCall, result: ToolResult) -> ToolResult:
        """Check the changes, in which secrets are already masked."""
        for change in result.meta.changes:
            if names := tuple(dict.fromkeys(new_secrets(change))):
                self._warn(SECRET_WRITTEN.format(path=change.path, names=", ".join(names)))
        return result


def new_secrets(change: FileChange) -> Iterator[str]:
    """Yield the names of the secrets that a change adds, one for each."""
    lines = change.diff.splitlines()
    before = [name for line in lines if _is_of(line, "-") for name in _names(line)]
    for name in (name for line in lines if _is_of(line, "+") for name in _names(line)):
        if name in before:
            before.remove(name)
        else:
            yield name


def _is_of(line: str, sign: str) -> bool:
    return line.startswith(sign) and not line.startswith(sign * 3)


def _names(line: str) -> Iterator[str]:
    for found in re.finditer(re.escape(MASK), line):
        label = _LABEL.search(line[1 : found.start()])
        yield label[1] if label else _UNNAMED
