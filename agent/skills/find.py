"""Finds skills: in the user's folder, in plugins, and optionally in ~/.claude/skills; never in a workspace."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agent.config.user_dirs import config_dir
from agent.run_context import RunContext
from agent.skills.skill import SKILL_FILE, Skill, read_skill
from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import did_you_mean

FOLDER = "skills"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSet:
    """The skills by name, and the problems of invalid ones."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[str, ...] = ()

    def get(self, name: str) -> Skill:
        """Return a skill. Raises InputError if there is none with this name."""
        known = {skill.name: skill for skill in self.skills}
        if name not in known:
            hint = f"known skills: {', '.join(known) or 'none'}; a path to a skill's folder works, too"
            raise InputError(f"there is no skill {name!r}{did_you_mean(name, list(known))}", hint)
        return known[name]


def user_skill_folder(environ: Mapping[str, str]) -> Path:
    """Return the user's skill folder, which may not exist."""
    return config_dir(environ) / FOLDER


def skill_folders(
    environ: Mapping[str, str], *, with_claude: bool, plugins: Iterable[tuple[str, Path]] = ()
) -> Iterator[tuple[str, Path]]:
    """Yield the folders that contain skills, each with a description of its location; earlier ones take precedence."""
    yield "yours", user_skill_folder(environ)
    for name, folder in plugins:
        yield f"plugin {name}", folder / FOLDER
    if with_claude and (home := environ.get("HOME")):
        yield "~/.claude", Path(home) / ".claude" / FOLDER


def find_run_skills(context: RunContext) -> SkillSet:
    """Return the skills that a run may use; a bare run has only those passed to it."""
    if context.loaded.is_bare:
        return SkillSet()
    plugins = context.plugins.plugins if context.plugins else ()
    own = [(plugin.name, plugin.folder) for plugin in plugins if plugin.folder]
    return find_skills(skill_folders(context.environ, with_claude=context.settings.claude_skills, plugins=own))


def find_skills(folders: Iterable[tuple[str, Path]]) -> SkillSet:
    """Read all skills; invalid ones are listed in the problems."""
    skills: dict[str, Skill] = {}
    problems: list[str] = []
    for source, parent in folders:
        for folder in _subfolders(parent):
            try:
                skill = read_skill(folder, source)
            except InputError as error:
                problems.append(f"skipped a skill: {error.message}")
                continue
            if skill.name in skills:
                problems.append(f"skipped a skill: {folder} has the name of {skills[skill.name].folder}")
            else:
                skills[skill.name] = skill
    return SkillSet(skills=tuple(skills.values()), problems=tuple(problems))


def choose_skills(
    wanted: Sequence[str] | Mapping[str, object], known: SkillSet, base: Path
) -> tuple[SkillSet, tuple[Skill, ...]]:
    """Return all skills, including those given by path, and the requested ones, by path or by name."""
    texts = wanted.values() if isinstance(wanted, Mapping) else wanted
    chosen: list[Skill] = []
    for text in map(str, texts):
        path = base / Path(text).expanduser()
        folder = path.parent if path.name == SKILL_FILE else path
        if (folder / SKILL_FILE).is_file():
            chosen.append(read_skill(folder.resolve(), "given"))
        elif "/" in text:
            raise InputError(f"{text} is not a skill: it has no {SKILL_FILE}")
        else:
            chosen.append(known.get(text))
    names = {skill.name for skill in chosen}
    others = tuple(skill for skill in known.skills if skill.name not in names)
    return SkillSet(skills=(*chosen, *others), problems=known.problems), tuple(chosen)


def _subfolders(parent: Path) -> list[Path]:
    try:
        with os.scandir(parent) as entries:
            names = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    except OSError:
        return []
    return [parent / name for name in sorted(names)]
