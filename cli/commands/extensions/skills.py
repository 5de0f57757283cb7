"""`agent skills`: list, show and check skills, and start a new one."""

from pathlib import Path
from typing import Annotated

import typer

from agent.config.load import load_settings
from agent.config.user_dirs import current_folder, os_environ
from agent.plugins.find import find_plugins
from agent.skills.find import SkillSet, choose_skills, find_skills, skill_folders, user_skill_folder
from agent.skills.skill import Skill, problems_of
from agent.vocabulary import exit_codes
from cli.messages.translate import translate
from cli.pages.columns import render_rows
from cli.pages.pages import print_json, print_lines, print_text, terminal_width
from cli.run.progress import print_stderr

app = typer.Typer(no_args_is_help=True)
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Name = Annotated[str, typer.Argument(metavar="NAME|PATH", help="A skill, by its name or folder.")]
CHECKED = "A skill, by its name or folder; all of yours if left out."
NO_SKILLS = "(no skills)"
CREATED = "created {folder}\nchange SKILL.md, then check it with: agent skills check {name}"


@app.command("list")
def list_skills(*, as_json: JsonOption = False) -> None:
    """List the skills that runs can use, and what is wrong with others."""
    found = known_skills()
    if as_json:
        print_json([_record(skill) for skill in found.skills])
    else:
        rows = [(skill.name, skill.source, skill.description) for skill in found.skills]
        print_lines(render_rows(rows, terminal_width()) if rows else [NO_SKILLS])
    for problem in found.problems:
        print_stderr(f"warning: {problem}")


@app.command("show")
def show(name: Name, *, as_json: JsonOption = False) -> None:
    """Show a skill as the model reads it, with its files."""
    skill = _choose(name)
    if as_json:
        print_json({**_record(skill), "body": skill.body})
        return
    head = [f"{skill.name} ({skill.source}: {skill.folder})", skill.description]
    print_text("\n".join([*head, *(f"  {file}" for file in skill.files), "", skill.body]) + "\n")


@app.command("check")
def check(name: Annotated[str, typer.Argument(metavar="[NAME|PATH]", help=CHECKED)] = "") -> None:
    """Check skills against the format, and that the files they name exist. Exits with 1 if something is wrong."""
    found = None if name else known_skills()
    skills = [_choose(name)] if found is None else found.skills
    problems = list(found.problems) if found else []
    for skill in skills:
        wrong = problems_of(skill)
        print_lines([f"{skill.name}: {problem}" for problem in wrong] or [f"{skill.name}: ok"])
        problems += wrong
    for problem in found.problems if found else ():
        print_stderr(f"error: {problem}")
    raise typer.Exit(exit_codes.FAILED if problems else exit_codes.OK)


@app.command("new")
def new_skill(name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the skill.")]) -> None:
    """Create a skill in your settings folder, with a script."""
    from agent.skills.skeleton import create_skill

    folder = create_skill(user_skill_folder(os_environ()), name)
    print_lines(translate(CREATED.format(folder=folder, name=name)).splitlines())


def known_skills() -> SkillSet:
    """Return the skills of this user: own ones, those of plugins, and those of ~/.claude if wanted."""
    environ = os_environ()
    settings = load_settings(environ=environ).settings
    loaded = find_plugins(environ, settings)
    own: list[tuple[str, Path]] = []
    if loaded:
        own = [(plugin.name, plugin.folder) for plugin in loaded.plugins if plugin.folder]
    return find_skills(skill_folders(environ, with_claude=settings.claude_skills, plugins=own))


def _choose(name: str) -> Skill:
    _, chosen = choose_skills((name,), known_skills(), current_folder())
    return chosen[0]


def _record(skill: Skill) -> dict[str, object]:
    return {
        "name": skill.name,
        "description": skill.description,
        "source": skill.source,
        "folder": str(skill.folder),
        "files": list(skill.files),
    }
