"""What a run needs, checked one by one: is it there, and what to do when it is not."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from agent.config.load import load_settings
from agent.config.places import config_file, data_dir
from agent.config.settings import Settings
from agent.model.faults import ModelFault
from agent.model.local_server import find_local_server
from agent.model.providers import resolve
from agent.vocabulary.errors import AgentError, SandboxError
from agent.web_settings import web_settings
from tooling.contract.fast_dataclass import dataclass
from tooling.files.temp_dir import TempDir
from tooling.tool_catalog import read_catalogue
from tooling.web.search.providers import setup_words, usable

State: TypeAlias = Literal["ok", "note", "problem"]
_PROGRAMS: dict[str, tuple[State, str]] = {
    "bash": ("problem", "commands cannot run without it"),
    "git": ("note", "repositories cannot be worked on without it"),
    "rg": ("note", "searching is slower without ripgrep"),
    "bwrap": ("note", "bubblewrap is the better box; without it Landlock holds the commands"),
    "docker": ("note", "only needed for the docker backend"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    name: str
    state: State
    detail: str


async def examine(environ: Mapping[str, str]) -> list[Finding]:
    """Look at everything a run needs; nothing secret is in what comes back."""
    findings = [Finding(name="python", state="ok", detail=sys.version.split()[0])]
    findings += await _model(environ)
    findings.append(_data(environ))
    findings += [_program(name) for name in _PROGRAMS]
    findings += await _box(environ)
    catalogue = read_catalogue()
    findings.append(Finding(name="tools", state="ok", detail=", ".join(spec.name for spec in catalogue.specs)))
    findings += [Finding(name="plugin", state="problem", detail=warning) for warning in catalogue.warnings]
    return findings


async def _model(environ: Mapping[str, str]) -> list[Finding]:
    try:
        loaded = load_settings(environ=environ)
    except AgentError as error:
        return [Finding(name="settings", state="problem", detail=error.message)]
    path = config_file(environ)
    settings = Finding(name="settings", state="ok", detail=str(path) if path.exists() else f"{path} (not there)")
    keys = ", ".join(sorted(loaded.settings.keys)) or "none"
    found = [settings, Finding(name="keys", state="ok", detail=keys)]
    found += [Finding(name="settings", state="note", detail=warning) for warning in loaded.warnings]
    found.append(_search(loaded.settings))
    model = loaded.settings.model
    if not model:
        local = await find_local_server()
        if local is None:
            detail = "none is set: `agent config set model provider/name`"
            return [*found, Finding(name="model", state="problem", detail=detail)]
        return [*found, Finding(name="model", state="ok", detail=f"{local.model} at {local.api_base} (found)")]
    return [*found, _named_model(model, loaded.settings)]


def _search(settings: Settings) -> Finding:
    wanted = web_settings(settings)
    if providers := usable(wanted):
        return Finding(name="search", state="ok", detail=", ".join(providers))
    return Finding(name="search", state="note", detail=f"search_web needs one of {setup_words(wanted.search_order)}")


def _named_model(model: str, settings: Settings) -> Finding:
    if model.startswith("script:"):
        there = Path(model.removeprefix("script:")).expanduser().is_file()
        return Finding(name="model", state="ok" if there else "problem", detail=model)
    try:
        endpoint = resolve(model, settings)
    except ModelFault as fault:
        return Finding(name="model", state="problem", detail=f"{model}: {fault}")
    where = endpoint.base_url or "through litellm"
    return Finding(name="model", state="ok", detail=f"{model} ({endpoint.provider}, {where})")


def _data(environ: Mapping[str, str]) -> Finding:
    try:
        folder = data_dir(environ)
    except AgentError as error:
        return Finding(name="data", state="problem", detail=error.message)
    is_writable = os.access(folder, os.W_OK | os.X_OK)
    return Finding(name="data", state="ok" if is_writable else "problem", detail=str(folder))


async def _box(environ: Mapping[str, str]) -> list[Finding]:
    """Start the box and try to get out of it, as every run does."""
    # The box brings thirty modules; `agent doctor` is the only command besides a run that needs them.
    from agent.backends.sandbox.runner import build_sandbox_runner
    from agent.backends.sandbox.self_test import settle

    with TempDir() as folder:
        try:
            runner = build_sandbox_runner(workspace=folder, environ=environ)
            try:
                probes, warning = await settle(runner)
                described = runner.describe()
            finally:
                runner.close()
        except SandboxError as error:
            return [Finding(name="sandbox", state="problem", detail=f"{error.message}; {error.hint}")]
    held = Finding(name="sandbox", state="ok", detail=f"{described.name}: held against {len(probes)} escapes")
    lacking = [
        Finding(name="sandbox", state="note", detail=f"does not cover: {what}") for what in described.not_covered
    ]
    return [held, *([Finding(name="sandbox", state="note", detail=warning)] if warning else []), *lacking]


def _program(name: str) -> Finding:
    path = shutil.which(name)
    if path:
        return Finding(name=name, state="ok", detail=path)
    state, why = _PROGRAMS[name]
    return Finding(name=name, state=state, detail=f"not found: {why}")
