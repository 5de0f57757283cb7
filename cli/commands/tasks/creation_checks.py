"""Checks a new task as `agent run` would, so that a typing error is told now and not in the night."""

from collections.abc import Sequence
from pathlib import Path

from agent.config.load import load_settings
from agent.config.service_settings import load_service_settings
from agent.config.user_dirs import os_environ
from agent.service.task import TaskRequest
from agent.vocabulary.errors import InputError, UsageError

SCRIPT = "script:"


def check_here(request: TaskRequest, skills: Sequence[str]) -> None:
    """Raise UsageError for settings, addresses and files that no run could use."""
    assignments = [f"{name}={value}" for name, value in request.settings.items()]
    flags = {"callback_url": request.callback_url or None, "backend": request.backend or None}
    loaded = load_settings(environ=os_environ(), flags=flags, assignments=assignments)
    model = request.config.model or ""
    if model.startswith(SCRIPT) and not Path(model.removeprefix(SCRIPT)).is_file():
        raise UsageError(f"--model {model}: there is no such file")
    _check_repository(request.config.repo_url)
    # With a database, the worker may be on a machine that has them.
    if skills and not load_service_settings(loaded, os_environ()).settings.database_url:
        _check_skills(skills)


def _check_repository(url: str) -> None:
    if not url:
        return
    from agent.workspace.clone import parse_url

    try:
        parse_url(url)
    except InputError as error:
        raise UsageError(error.message, error.hint) from error


def _check_skills(skills: Sequence[str]) -> None:
    from agent.skills.find import choose_skills
    from cli.commands.extensions.skills import known_skills

    choose_skills(skills, known_skills(), Path.cwd())
