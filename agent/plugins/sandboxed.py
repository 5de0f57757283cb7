"""Plugins that run in the sandbox: tools declared in plugin.toml, whose commands read their arguments as JSON."""

import asyncio
import json
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field, make_dataclass
from pathlib import Path

from tooling.contract.action import Action, Effect
from tooling.contract.command import CommandRequest
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, decode
from tooling.contract.result import TIMED_OUT, ToolError, ToolResult, error_result
from tooling.contract.schema_errors import find_schema_error
from tooling.contract.tool import AnyTool, Tool, ToolSpec

MANIFEST = "plugin.toml"
_FOLDER = "plugins"
_SUBJECTS = {"read": "path", "write": "path", "web": "url"}
_MAX_BYTES = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeclaredTool:
    """One tool of a manifest; parameters without a default are required unless declared otherwise."""

    name: str
    description: str
    command: tuple[str, ...]
    parameters: Mapping[str, Mapping[str, object]]
    effect: Effect | None = None
    timeout_s: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    """The contents of a plugin.toml."""

    tools: tuple[_DeclaredTool, ...] = ()


def read_manifest(folder: Path) -> tuple[type[AnyTool], ...]:
    """Return the tools declared in a manifest. Raises ValueError if it is invalid."""
    try:
        manifest = decode(_Manifest, tomllib.loads((folder / MANIFEST).read_text("utf-8")))
    except (DecodeError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{MANIFEST}: {error}") from error
    if not manifest.tools:
        raise ValueError(f"{MANIFEST} declares no tools")
    return tuple(_build_class(folder, declared) for declared in manifest.tools)


def _build_class(folder: Path, declared: _DeclaredTool) -> type[AnyTool]:
    schema: dict[str, object] = {
        "type": "object",
        "properties": {name: dict(about) for name, about in declared.parameters.items()},
        "required": [name for name, about in declared.parameters.items() if "default" not in about],
        "additionalProperties": False,
    }

    arguments = make_dataclass(
        f"{declared.name}_arguments", [(name, object, field(default=None)) for name in declared.parameters], frozen=True
    )

    class SandboxedTool(Tool[object]):
        """Runs the command of one declared tool."""

        spec = ToolSpec(
            name=declared.name,
            description=declared.description,
            parameters=schema,
            effect=declared.effect or "note",
            requires_approval=declared.effect is None,
            timeout_ms=0,
        )
        params = arguments

        def action(self, given: object, ctx: ExecCtx) -> Action:
            values = _checked(given, schema)
            subject = values.get(_SUBJECTS.get(self.spec.effect, ""), "")
            about = str(subject) if subject else f"{declared.name} {json.dumps(values, ensure_ascii=False)}"
            return Action(tool=declared.name, effect=self.spec.effect, subject=about, cwd=ctx.working_dir)

        async def run(self, given: object, ctx: ExecCtx) -> ToolResult:
            values = _checked(given, schema)
            copy = await asyncio.to_thread(_stage, folder, ctx)
            argv = tuple(str(copy / word) if (copy / word).is_file() else word for word in declared.command)
            output = await self._services.runner.run(
                CommandRequest(
                    argv=(*argv, json.dumps(values, ensure_ascii=False)),
                    cwd=ctx.working_dir,
                    timeout_s=declared.timeout_s,
                    cancel_check=ctx.cancel_check,
                )
            )
            text = output.output.decode("utf-8", "replace").strip()
            if output.timed_out:
                return error_result(f"{declared.name} took too long.", exit_code=TIMED_OUT, status="timeout")
            if output.exit_code:
                return error_result(text or f"{declared.name} failed.", exit_code=output.exit_code)
            return ToolResult(text or "Done.")

    SandboxedTool.__name__ = SandboxedTool.__qualname__ = declared.name
    return SandboxedTool


def _checked(given: object, schema: Mapping[str, object]) -> Mapping[str, object]:
    values = {name: value for name, value in vars(given).items() if value is not None}
    if problem := find_schema_error(values, schema, "arguments"):
        raise ToolError(f"Wrong arguments: {problem}.")
    return values


def _stage(folder: Path, ctx: ExecCtx) -> Path:
    """Copy the plugin to a folder that commands can read; the settings folder is hidden from them."""
    if ctx.outputs_dir is None:
        raise ToolError("This call has no folder for the plugin's files.")
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    if sum(path.stat().st_size for path in files) > _MAX_BYTES:
        raise ToolError(f"The plugin has more than {_MAX_BYTES // 1_000_000} MB.")
    target = ctx.outputs_dir / _FOLDER / folder.name
    for path in _newer(files, folder, target):
        copy = target / path.relative_to(folder)
        copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    return target


def _newer(files: Sequence[Path], folder: Path, target: Path) -> list[Path]:
    def is_same(path: Path) -> bool:
        copy = target / path.relative_to(folder)
        return copy.exists() and (copy.stat().st_mtime, copy.stat().st_size) == (
            path.stat().st_mtime,
            path.stat().st_size,
        )

    return [path for path in files if not is_same(path)]
