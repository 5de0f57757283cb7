"""The configuration of one task: what `AgentExecutor.execute` prepares before the agent starts."""

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, decode

MAIN_BRANCH = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfig:
    """What a task works on and with; the field names are those of the JSON that programs send.

    `git_branch` None means the repository's default branch. `input_files` are paths, or objects with a `path` and
    optionally the `name` in `input/`. `skill_files` are paths or names of skills, or an object with a path for each
    name. `mcp_config` is what an `mcpServers` file contains. `custom_instructions` are added to the request as context.

    `container_mode`, `container_id`, `agents`, `env_overrides` and `local_mounts` are accepted and handed to hooks; the
    run itself does not use them.
    """

    model: str = ""
    repo_url: str = ""
    git_branch: str | None = None
    is_shallow: bool = False
    mcp_config: Mapping[str, object] = field(default_factory=dict)
    skill_files: tuple[str, ...] | Mapping[str, object] = ()
    input_files: tuple[str | Mapping[str, object], ...] = ()
    custom_instructions: str = ""
    container_mode: str | None = None
    container_id: str | None = None
    user_id: str | int | None = None
    permission_mode: str | None = None
    memory_enabled: bool | None = None
    max_turns: int | None = None
    env_overrides: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, object] = field(default_factory=dict)
    local_mounts: tuple[object, ...] = ()

    @property
    def inputs(self) -> tuple[tuple[Path, str], ...]:
        """The input files, each with its name in `input/`. Raises InputError for one without a path."""
        return tuple(map(_input_file, self.input_files))


def task_config_from_json(text: str) -> TaskConfig:
    """Read a task configuration; null means the default. Raises InputError."""
    try:
        data = json.loads(text)
        given = {key: value for key, value in data.items() if value is not None} if isinstance(data, Mapping) else data
        return decode(TaskConfig, given)
    except (ValueError, DecodeError) as error:
        raise InputError(f"the task configuration cannot be used: {error}") from error


def _input_file(given: str | Mapping[str, object]) -> tuple[Path, str]:
    if isinstance(given, str):
        return Path(given), Path(given).name
    path = given.get("path") or given.get("source")
    name = given.get("name")
    if not isinstance(path, str) or not (name is None or isinstance(name, str)):
        raise InputError("an input file needs a path", 'for example {"path": "data.csv"}')
    return Path(path), name or Path(path).name
