"""The configuration of one task, applied by `AgentExecutor.execute` before the agent starts."""

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, decode

MAIN_BRANCH = "main"


# Aliases of the access modes in container tools.
_MODES = {"ro": True, "read_only": True, "readonly": True, "rw": False, "read_write": False, "readwrite": False}
UNUSABLE = "the task configuration cannot be used: {problem}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """An agent that steps of a plan may use; `prompt` and `tools` are named as in Claude Code.

    Without `tools` it has those of the run; with an empty list it has none.
    """

    description: str = ""
    prompt: str = ""
    instructions: str = ""
    tools: tuple[str, ...] | None = None
    allowed_tools: tuple[str, ...] | None = None
    model: str = ""
    read_only: bool = False
    max_turns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder that a task may read, or also write."""

    path: Path
    is_read_only: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfig:
    """Configuration of a task run; the field names are those of the JSON that programs send.

    `git_branch` None means the repository's default branch. `input_files` are paths, or objects with a `path` and
    optionally the `name` in `input/`. `skill_files` are paths or names of skills, or an object with a path for each
    name. `mcp_config` is the content of an `mcpServers` file. `custom_instructions` are added to the context.

    `env_overrides` are variables of the task's commands. `agents` are profiles by name that steps of a plan may use.
    `local_mounts` are additional folders: paths, which are read-only, or objects with a `path` and a `mode`, ro or rw.
    `container_mode` and `container_id` are for the program that starts containers, and for hooks.
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

    @property
    def named_agents(self) -> dict[str, AgentConfig]:
        """The agents by name. Raises InputError."""
        try:
            return {name: decode(AgentConfig, given, location=f"agents.{name}") for name, given in self.agents.items()}
        except DecodeError as error:
            raise InputError(UNUSABLE.format(problem=error)) from error

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The additional folders. Raises InputError."""
        return tuple(map(_mount, self.local_mounts))


def task_config_from_json(text: str) -> TaskConfig:
    """Read a task configuration; null means the default. Raises InputError."""
    try:
        data = json.loads(text)
        given = {key: value for key, value in data.items() if value is not None} if isinstance(data, Mapping) else data
        return decode(TaskConfig, given)
    except (ValueError, DecodeError) as error:
        raise InputError(UNUSABLE.format(problem=error)) from error


def _input_file(given: str | Mapping[str, object]) -> tuple[Path, str]:
    if isinstance(given, str):
        return Path(given), Path(given).name
    path = given.get("path") or given.get("source")
    name = given.get("name")
    if not isinstance(path, str) or not (name is None or isinstance(name, str)):
        raise InputError("an input file needs a path", 'for example {"path": "data.csv"}')
    return Path(path), name or Path(path).name


def _mount(given: object) -> Mount:
    if isinstance(given, str):
        return Mount(path=Path(given))
    entry = given if isinstance(given, Mapping) else {}
    path = entry.get("path") or entry.get("host_path") or entry.get("source")
    if not isinstance(path, str) or not Path(path).is_absolute():
        raise InputError("a local mount needs an absolute path", 'for example {"path": "/data", "mode": "ro"}')
    if (target := entry.get("target") or entry.get("container_path") or path) != path:
        raise InputError(f"{path} cannot be mounted at {target}", "a mount keeps its path: leave out the target")
    mode = entry.get("mode") or entry.get("access_mode") or "ro"
    if mode not in _MODES:
        raise InputError(f"the mount {path} has the unknown mode {mode!r}", "modes: ro and rw")
    return Mount(path=Path(path), is_read_only=entry.get("read_only") is True or _MODES[str(mode)])
