"""Whether a run needs a model at all, and which one serves it."""

from agent.config.load import LoadedSettings
from agent.config.settings import Settings
from agent.model.local_server import find_local_server, raise_no_model
from agent.protocol.commands import Submit


def replans_given_plans(loaded: LoadedSettings) -> bool:
    """Say whether somebody wants even a plan that was given to be made again."""
    return loaded.origins["replan"].layer == "flag" and loaded.settings.replan != "never"


def needs_model(submit: Submit, loaded: LoadedSettings) -> bool:
    """Say whether a model may be asked: by a planner, by a task, or to plan again."""
    return submit.needs_model or (replans_given_plans(loaded) and not submit.plan_only)


async def choose_model(submit: Submit, settings: Settings, *, is_replay: bool) -> str:
    """Return the model that is set, the first of a plan whose tasks all name one, or one that runs on this machine."""
    if settings.model or is_replay:
        return settings.model or "replay"
    named = [step.model for step in submit.plan.steps if step.type == "task"] if submit.plan else []
    if named and all(named):
        return named[0]
    found = await find_local_server()
    return found.model if found else raise_no_model()
