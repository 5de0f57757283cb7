"""The plan file of a command line: read and checked, and edited when that is asked for, before a run begins."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from agent.config.settings import Settings
from agent.dispatcher import Dispatcher
from agent.planning.means import Means
from agent.planning.plan_file import PlanFile, read_plan_file
from agent.vocabulary.errors import LimitError
from cli.run.flags import RunFlags
from cli.run.plan_editor import PlanEditor
from tooling.tool_catalog import read_catalogue


def given_plan(flags: RunFlags, settings: Settings, environ: Mapping[str, str]) -> PlanFile:
    """Return the plan of `--plan`; raises InputError or LimitError before anything has run."""
    means = means_of(settings)
    given = read_plan_file(flags.plan or Path(), means)
    if flags.edit:
        given = replace(given, steps=PlanEditor(means, environ).edited(given.steps, flags.prompt or given.request))
    check_size(len(given.steps), settings)
    return given


def means_of(settings: Settings) -> Means:
    """Return what steps can use under these settings."""
    tools = {spec.name: spec for spec in read_catalogue().specs}
    return Means(tools=tools, profiles=Dispatcher(settings, tuple(tools)).profiles)


def check_size(count: int, settings: Settings) -> None:
    """Refuse a plan that is longer than the limit: a file is run whole or not at all."""
    if count > settings.max_steps:
        problem = f"the plan has {count} steps and the limit is {settings.max_steps}"
        raise LimitError(problem, f"raise it with --max-steps {count}")
