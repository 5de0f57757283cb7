"""Preparation of a task: its configuration as flags of the program, its skills and its input files."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent.planning.manifest_file import toml_manifest
from agent.service.task import Task, TaskRequest
from agent.skills.skill import SKILL_FILE
from agent.vocabulary.errors import InputError
from agent.vocabulary.task_config import TaskConfig
from agent.workspace.request_context import stage_inputs
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import encode
from tooling.files.atomic_write import write_atomic


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTask:
    """A task with the input of its executor: flags of the program, and the configuration of its request."""

    task: Task
    flags: tuple[str, ...]
    config: TaskConfig


class ConfigResolver:
    """Turns a request into flags of `agent run`; values passed as files are written to `folder`."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self._settings = settings

    def resolve(self, task: Task, config: TaskConfig) -> PreparedTask:
        """Return the flags of a task. Raises InputError if it cannot run."""
        request = task.request
        settings = {**self._settings, **request.settings}
        if request.callback_url:
            settings["callback_url"] = request.callback_url
        flags = [*self._folder_flags(request), *(("--backend", request.backend) if request.backend else ())]
        for name, value in settings.items():
            flags += ["--set", f"{name}={value}"]
        if request.is_unattended:
            flags += ["--set", "approval_mode=never"]
        if request.grants is not None:
            flags += ["--manifest", str(self._write_grants(task))]
        return PreparedTask(task=task, flags=tuple(flags), config=config)

    def _folder_flags(self, request: TaskRequest) -> tuple[str, ...]:
        if not request.cwd:
            return ("--scratch",)
        if not Path(request.cwd).is_dir():
            raise InputError(f"{request.cwd} is not an existing folder on this machine")
        return ("-C", request.cwd)

    def _write_grants(self, task: Task) -> Path:
        self._folder.mkdir(mode=0o700, exist_ok=True, parents=True)
        path = self._folder / f"{task.task_id}.toml"
        assert task.request.grants is not None
        write_atomic(path, toml_manifest(task.request.grants).encode())
        return path


class SkillStager:
    """Copies the skills that a task names by path into its session, so that later changes do not affect it."""

    def stage(self, config: TaskConfig, session: Path) -> TaskConfig:
        """Return the configuration with the paths of the copies. Raises InputError for a missing skill."""
        if isinstance(config.skill_files, Mapping):
            copied = {name: self._copy(name, path, session) for name, path in config.skill_files.items()}
            return replace(config, skill_files=copied)
        return replace(
            config, skill_files=tuple(self._copy(Path(name).name, name, session) for name in config.skill_files)
        )

    def _copy(self, name: str, given: object, session: Path) -> str:
        path = Path(str(given))
        if not path.is_absolute():
            # The name of an installed skill.
            return str(given)
        source = path.parent if path.name == SKILL_FILE else path
        if not (source / SKILL_FILE).is_file():
            raise InputError(f"the skill {path} does not exist on this machine")
        target = session / "skills" / source.name
        if not target.exists():
            target.parent.mkdir(mode=0o700, exist_ok=True)
            shutil.copytree(source, target, symlinks=True)
        return str(target)


class AttachmentStager:
    """Copies the input files of a task into its session, so that later attempts get the same files."""

    def stage(self, config: TaskConfig, session: Path) -> TaskConfig:
        """Return the configuration with the paths of the copies. Raises InputError for a missing file."""
        folder = session / "inputs"
        if not config.input_files:
            return config
        folder.mkdir(mode=0o700, exist_ok=True)
        missing = tuple((source, name) for source, name in config.inputs if not (folder / "input" / name).exists())
        stage_inputs(missing, folder)
        copies = ({"path": str(folder / "input" / name), "name": name} for _, name in config.inputs)
        return replace(config, input_files=tuple(copies))


def config_as_json(config: TaskConfig) -> dict[str, object]:
    """Return a configuration in the form that programs send, without unset fields."""
    plain = encode(config)
    defaults = encode(TaskConfig())
    assert isinstance(plain, Mapping)
    assert isinstance(defaults, Mapping)
    return {name: value for name, value in plain.items() if value != defaults[name]}
