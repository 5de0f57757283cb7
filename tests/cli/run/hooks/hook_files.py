"""Writes hook commands into a user's settings folder, or into a project."""

import json
from pathlib import Path

from tests.cli.terminal_user import User


def settings_folder(user: User) -> Path:
    folder = user.home / ".config" / "agent"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def script(folder: Path, name: str, text: str) -> Path:
    """Write an executable script."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def hooks_json(event: str, command: str, matcher: str | None = None, **options: object) -> dict[str, object]:
    group: dict[str, object] = {} if matcher is None else {"matcher": matcher}
    return {event: [{**group, "hooks": [{"type": "command", "command": command, **options}]}]}


def save_hooks(path: Path, *groups: dict[str, object]) -> None:
    """Save hooks in the form of Claude Code's settings."""
    merged: dict[str, object] = {}
    for group in groups:
        merged |= group
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"hooks": merged}))


def user_hooks(user: User, *groups: dict[str, object]) -> None:
    save_hooks(settings_folder(user) / "hooks.json", *groups)
