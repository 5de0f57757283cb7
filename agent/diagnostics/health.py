"""Health checks for `agent doctor`: model, settings, programs, sandbox, tools."""

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from agent.backends.sandbox.types import find_program
from agent.config.load import load_settings
from agent.config.mcp_file import user_servers
from agent.config.settings import Settings
from agent.config.user_dirs import config_file, data_dir
from agent.model.faults import ModelFault
from agent.model.local_server import find_local_server
from agent.model.providers import resolve
from agent.plugins.find import load_full_catalog
from agent.tool_setup import web_settings
from agent.vocabulary.errors import AgentError, SandboxError
from tooling.contract.fast_dataclass import dataclass
from tooling.files.temp_dir import TempDir
from tooling.mcp.servers import INSTALL, MISSING_EXTRA
from tooling.web.search.providers import configured_providers, setup_hint

State: TypeAlias = Literal["ok", "note", "problem"]
_PROGRAMS: dict[str, tuple[State, str]] = {
    "bash": ("problem", "commands cannot run without it"),
    "git": ("note", "needed to work with repositories"),
    "rg": ("note", "searching is slower without ripgrep"),
    "bwrap": ("note", "bubblewrap is the stronger sandbox; without it Landlock is used"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one check."""

    name: str
    state: State
    detail: str


async def run_checks(environ: Mapping[str, str]) -> list[CheckResult]:
    """Check everything a run needs; the results contain no secrets."""
    results = [CheckResult(name="python", state="ok", detail=sys.version.split()[0])]
    results += await _check_model(environ)
    results.append(_check_data_dir(environ))
    results += [_check_program(name) for name in _PROGRAMS]
    settings = _settings_or_default(environ)
    results += await _check_sandbox(environ, settings.sandbox_type)
    results.append(await _check_docker(environ))
    results += _check_mcp(environ)
    catalog = load_full_catalog(environ, settings)
    results.append(CheckResult(name="tools", state="ok", detail=", ".join(spec.name for spec in catalog.specs)))
    results += [CheckResult(name="plugin", state="problem", detail=warning) for warning in catalog.warnings]
    return results


def _settings_or_default(environ: Mapping[str, str]) -> Settings:
    """Return the settings; the defaults if they are invalid, which another check reports."""
    try:
        return load_settings(environ=environ).settings
    except AgentError:
        return Settings()


async def _check_model(environ: Mapping[str, str]) -> list[CheckResult]:
    try:
        loaded = load_settings(environ=environ)
    except AgentError as error:
        return [CheckResult(name="settings", state="problem", detail=error.message)]
    path = config_file(environ)
    settings = CheckResult(
        name="settings", state="ok", detail=str(path) if path.exists() else f"{path} (does not exist)"
    )
    keys = ", ".join(sorted(loaded.settings.keys)) or "none"
    found = [settings, CheckResult(name="keys", state="ok", detail=keys)]
    found += [CheckResult(name="settings", state="note", detail=warning) for warning in loaded.warnings]
    found.append(_check_search(loaded.settings))
    model = loaded.settings.model
    if not model:
        local = await find_local_server()
        if local is None:
            detail = "no model is set; run `agent config set model provider/name`"
            return [*found, CheckResult(name="model", state="problem", detail=detail)]
        return [*found, CheckResult(name="model", state="ok", detail=f"{local.model} at {local.api_base} (detected)")]
    return [*found, _check_named_model(model, loaded.settings)]


def _check_search(settings: Settings) -> CheckResult:
    web = web_settings(settings)
    if providers := configured_providers(web):
        return CheckResult(name="search", state="ok", detail=", ".join(providers))
    return CheckResult(name="search", state="note", detail=f"search_web needs one of {setup_hint(web.search_order)}")


def _check_named_model(model: str, settings: Settings) -> CheckResult:
    if model.startswith("script:"):
        exists = Path(model.removeprefix("script:")).expanduser().is_file()
        return CheckResult(name="model", state="ok" if exists else "problem", detail=model)
    try:
        endpoint = resolve(model, settings)
    except ModelFault as fault:
        return CheckResult(name="model", state="problem", detail=f"{model}: {fault}")
    location = endpoint.base_url or "through litellm"
    return CheckResult(name="model", state="ok", detail=f"{model} ({endpoint.provider}, {location})")


def _check_data_dir(environ: Mapping[str, str]) -> CheckResult:
    try:
        folder = data_dir(environ)
    except AgentError as error:
        return CheckResult(name="data", state="problem", detail=error.message)
    is_writable = os.access(folder, os.W_OK | os.X_OK)
    return CheckResult(name="data", state="ok" if is_writable else "problem", detail=str(folder))


async def _check_sandbox(environ: Mapping[str, str], sandbox_type: str) -> list[CheckResult]:
    """Start the sandbox and run its escape tests, as every run does."""
    # The sandbox imports thirty modules; `agent doctor` is the only command besides a run that needs them.
    from agent.backends.sandbox.runner import build_sandbox_runner
    from agent.backends.sandbox.self_test import self_test

    with TempDir() as folder:
        try:
            runner = build_sandbox_runner(workspace=folder, environ=environ, sandbox_type=sandbox_type)
            try:
                probes = await self_test(runner)
                described = runner.describe()
            finally:
                runner.close()
        except SandboxError as error:
            return [CheckResult(name="sandbox", state="problem", detail=f"{error.message}; {error.hint}")]
    passed = CheckResult(name="sandbox", state="ok", detail=f"{described.name}: passed {len(probes)} escape tests")
    gaps = [
        CheckResult(name="sandbox", state="note", detail=f"not protected: {what}") for what in described.not_covered
    ]
    return [passed, *gaps]


async def _check_docker(environ: Mapping[str, str]) -> CheckResult:
    """Report the engine that `--backend docker` would use, and whether it has the image."""
    from agent.backends.docker.engine import Engine, find_socket

    settings = _settings_or_default(environ)
    # A missing engine is a problem only for runs that request one.
    missing: State = "problem" if settings.backend == "docker" else "note"
    try:
        engine = Engine(find_socket(environ))
    except SandboxError as error:
        return CheckResult(name="docker", state=missing, detail=f"{error.message}; {error.hint}")
    described = ""
    try:
        described = f"{(await engine.connect()).description} at {engine.socket}; "
        await engine.find_image(settings.docker_image)
    except SandboxError as error:
        return CheckResult(name="docker", state=missing, detail=f"{described}{error.message}; {error.hint}")
    finally:
        await engine.close()
    return CheckResult(name="docker", state="ok", detail=f"{described}image {settings.docker_image}")


def _check_mcp(environ: Mapping[str, str]) -> list[CheckResult]:
    """List the configured servers; `agent mcp test` starts them."""
    try:
        file = user_servers(environ)
    except AgentError as error:
        return [CheckResult(name="mcp", state="problem", detail=error.message)]
    found = [CheckResult(name="mcp", state="problem", detail=problem) for problem in file.problems]
    if not file.servers:
        return found
    if find_spec("mcp") is None:
        return [*found, CheckResult(name="mcp", state="problem", detail=f"{MISSING_EXTRA}: {INSTALL}")]
    names = ", ".join(server.name for server in file.servers)
    return [*found, CheckResult(name="mcp", state="ok", detail=f"{names}; `agent mcp test` starts them")]


def _check_program(name: str) -> CheckResult:
    # The sandbox does not search PATH for its own program.
    path = find_program(name) if name == "bwrap" else shutil.which(name)
    if path:
        return CheckResult(name=name, state="ok", detail=str(path))
    state, why = _PROGRAMS[name]
    return CheckResult(name=name, state=state, detail=f"not found: {why}")
