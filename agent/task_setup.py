"""Applies the configuration of a task to a run: settings, profiles, variables, folders and secrets."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent.config.secrets import is_secret_variable
from agent.config.settings import ApprovalMode, ProfileSettings, Settings
from agent.run_scope import SessionLocation
from agent.vocabulary.errors import InputError
from agent.vocabulary.task_config import AgentConfig, TaskConfig
from tooling.contract.action import Decision
from tooling.contract.json_codec import did_you_mean
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.secrets.redact import MASK

# Aliases of approval modes.
_APPROVAL_MODES: dict[str, ApprovalMode] = {
    "default": "ask",
    "acceptEdits": "auto-edit",
    "plan": "plan",
    "bypassPermissions": "yolo",
    "dontAsk": "never",
}
_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
# Variables that decide which code programs load, or where the sandbox stores its files. The judge knows further ones.
_LOADS_CODE = lazy_pattern(
    r"(?:LD|DYLD|BASH|WINDLASS)_.*|PATH|HOME|TMPDIR|SHELL|IFS|PYTHONPATH|NODE_OPTIONS|RUBYOPT|CLASSPATH"
)
# Words, numbers and paths: masking them would make outputs unreadable.
_HARMLESS = lazy_pattern(r"[A-Za-z]+|[\d.:]+|(?:\.{0,2}/)?[\w.-]+(?:/[\w.-]+)+/?|/[\w.-]+/?")
_INHERITED = "inherit"


def apply_task(settings: Settings, config: TaskConfig) -> Settings:
    """Return the settings changed by the configuration of a task. Raises InputError."""
    if config.memory_enabled is not None:
        settings = replace(settings, memory=config.memory_enabled)
    if config.permission_mode:
        settings = replace(settings, approval_mode=_approval_mode(config.permission_mode))
    if agents := config.named_agents:
        profiles = {name: _profile(agent) for name, agent in agents.items()}
        settings = replace(settings, step_profiles={**settings.step_profiles, **profiles})
    return replace(settings, model=config.model or settings.model, max_turns=config.max_turns or settings.max_turns)


def apply_mounts(location: SessionLocation, config: TaskConfig) -> SessionLocation:
    """Return the location of a run with the folders and variables of its task. Raises InputError."""
    if not (config.local_mounts or config.env_overrides):
        return location
    mounts = config.mounts
    writable = tuple(mount.path for mount in mounts if not mount.is_read_only)
    return replace(
        location,
        extra_dirs=(*location.extra_dirs, *writable),
        read_dirs=tuple(mount.path for mount in mounts if mount.is_read_only),
        variables=_check_variables(config.env_overrides),
    )


def task_secrets(config: TaskConfig) -> tuple[str, ...]:
    """Return the texts to mask: credentials in the URL of the repository, and values of variables."""
    values = tuple(
        value
        for name, value in config.env_overrides.items()
        if is_secret_variable(name) or not _HARMLESS.fullmatch(value)
    )
    if "@" not in config.repo_url:
        return values
    from agent.workspace.clone import parse_url

    return (*parse_url(config.repo_url).secrets, *values)


def without_credentials(config: TaskConfig) -> TaskConfig:
    """Return the configuration without credentials."""
    config = replace(config, env_overrides=dict.fromkeys(config.env_overrides, MASK))
    if "@" not in config.repo_url:
        return config
    from agent.workspace.clone import parse_url

    return replace(config, repo_url=parse_url(config.repo_url).address)


def describe_agents(config: TaskConfig) -> str:
    """Return the description of a task's agents for the model, one line each."""
    lines = [f"{name}: {agent.description.strip()}" for name, agent in config.named_agents.items()]
    return "\n".join(("A step of a plan can have one of these as its profile:", *lines)) if lines else ""


def _approval_mode(name: str) -> ApprovalMode:
    if name not in _APPROVAL_MODES:
        problem = f"the task has the unknown permission_mode {name!r}{did_you_mean(name, _APPROVAL_MODES)}"
        raise InputError(problem, f"modes: {', '.join(_APPROVAL_MODES)}")
    return _APPROVAL_MODES[name]


def _profile(agent: AgentConfig) -> ProfileSettings:
    return ProfileSettings(
        allowed_tools=agent.allowed_tools if agent.tools is None else agent.tools,
        read_only=agent.read_only,
        model="" if agent.model == _INHERITED else agent.model,
        instructions=agent.instructions or agent.prompt,
        max_turns=agent.max_turns,
    )


def _check_variables(variables: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables of a task's commands; names that make programs load other code are refused."""
    for name, value in variables.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise InputError(f"env_overrides: {name!r} cannot be a variable")
        if reason := _why_refused(name, value):
            hint = "set it in the command that needs it, which is then judged"
            raise InputError(f"env_overrides: {name} is refused: {reason}", hint)
    return dict(variables)


def _why_refused(name: str, value: str) -> str:
    if _LOADS_CODE.fullmatch(name):
        return "it decides what programs load"
    from tooling.safety.action_judge import ActionJudge
    from tooling.safety.check import judge_command

    verdict = judge_command(f"{name}={shlex.quote(value)} true", workspace=Path("/nonexistent"), judge=ActionJudge())
    return "" if verdict.decision is Decision.ALLOW else verdict.reason
