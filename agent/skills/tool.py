"""The tool `skill`: its description lists the skills, and a call loads one and makes its files readable to commands."""

import asyncio
import filecmp
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from agent.run_scope import RunScope
from agent.skills.find import SkillSet
from agent.skills.skill import Skill
from agent.vocabulary.errors import InputError
from agent.workspace.request_context import wrap_in_tag
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolSpec

SKILL_TOOL = "skill"
_INTRO = "Load a skill: instructions for work of a certain kind. Load it before you start such work. Skills:"
_MAX_FILES = 2000
_MAX_BYTES = 50_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillParams:
    """Arguments of skill."""

    name: Annotated[str, "name of a skill"]


class SkillTool(Tool[SkillParams]):
    """Loads skills for the model."""

    params = SkillParams

    def __init__(self, skills: SkillSet, stage: Callable[[Skill], Path | None]) -> None:
        self._skills = skills
        self._stage = stage
        lines = [f"- {skill.name}: {skill.description}" for skill in skills.skills]
        self.spec = ToolSpec(
            name=SKILL_TOOL,
            description="\n".join((_INTRO, *lines)),
            parameters=schema_of(SkillParams),
            effect="note",
        )

    async def run(self, params: SkillParams, ctx: ExecCtx) -> ToolResult:
        """Return the body of a skill and the location of its files."""
        try:
            skill = self._skills.get(params.name)
            folder = await asyncio.to_thread(self._stage, skill)
        except InputError as error:
            raise ToolError(f"{error.message}. {error.hint}") from error
        except OSError as error:
            raise ToolError(f"The files of the skill cannot be copied: {error.strerror}.") from error
        return ToolResult(describe_skill(skill, folder), display=f"{skill.name}: {skill.description}")


def describe_skill(skill: Skill, folder: Path | None) -> str:
    """Return the instructions of a skill for the model."""
    text = wrap_in_tag("skill", skill.body, title=skill.name)
    if folder is None:
        return text
    listed = "\n".join(skill.files)
    return f"{text}\n\nIts files are in {folder}; paths in the skill are relative to it:\n{listed}"


def stage_skill(skill: Skill, scope: RunScope) -> Path | None:
    """Copy the files of a skill to a folder that commands can read, and return the copy; None if it has none.

    In a workspace of the session that is `.skills/`; nothing is copied into the user's folder. An identical copy
    is reused. Links that lead out of the folder are skipped. Raises InputError if the skill is too large.
    """
    parent = scope.skill_folder
    target = parent / skill.folder.name
    names = [name for name in skill.files if _is_inside(skill.folder / name, skill.folder)]
    size = sum((skill.folder / name).stat().st_size for name in names)
    if not names:
        return None
    if len(names) > _MAX_FILES or size > _MAX_BYTES:
        raise InputError(f"the skill {skill.name} has too many files or more than {_MAX_BYTES // 1_000_000} MB")
    _, different, missing = filecmp.cmpfiles(skill.folder, target, names, shallow=False)
    if not (different or missing):
        return target
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Copied where no command can see it: a link that one puts in place of a folder would lead the copy elsewhere.
    with tempfile.TemporaryDirectory(dir=scope.folder.root, prefix=".skill-") as private:
        fresh = Path(private) / skill.folder.name
        for name in names:
            (fresh / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(skill.folder / name, fresh / name)
        fd = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            shutil.rmtree(target.name, ignore_errors=True, dir_fd=fd)
            os.rename(fresh, target.name, dst_dir_fd=fd)
        finally:
            os.close(fd)
    return target


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
