"""The model of a run: its selection, and the client for all requests of the run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.config.settings import Settings
from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel
from agent.model.providers import key_names
from agent.model.router import SCRIPT_PREFIX, ModelRouter
from agent.protocol.commands import Submit
from agent.protocol.events import WarningRaised
from agent.run_context import RunContext
from agent.run_scope import RunScope
from agent.vocabulary.errors import ConfigError
from agent.vocabulary.plan import PlanStep
from tooling.contract.action import Reviewer
from tooling.files.blobs import BlobStore

if TYPE_CHECKING:
    from agent.plugins.run_plugins import OpenPlugins

NO_REVIEWER = "approval mode review needs a reviewer model"


async def choose_model(context: RunContext, submit: Submit) -> str:
    """Return the configured model, the first of a plan whose tasks all name one, or one served on this machine."""
    if context.settings.model or context.options.replay:
        return context.settings.model or "replay"
    named = [step.model for step in submit.plan.steps if step.type == "task"] if submit.plan else []
    if named and all(named):
        return named[0]
    from agent.model.local_server import find_local_server, raise_no_model

    found = await find_local_server()
    return found.model if found else raise_no_model()


def build_router(context: RunContext, model: str, plugins: "OpenPlugins | None") -> ModelRouter:
    scope, settings = context.scope, context.settings

    def warn_retry(fault: ModelFault, wait_s: float) -> None:
        warn(f"{str(fault).rstrip('.')}; retrying in {wait_s:.1f} s")

    def warn(message: str) -> None:
        scope.channel.emit(WarningRaised(message=message))

    return ModelRouter(
        replace(
            settings,
            model=model,
            planner_model=settings.planner_model if model else "",
            composer_model=settings.composer_model if model else "",
        ),
        prices=context.prices,
        record=context.options.record,
        replay=context.options.replay,
        volatile={str(scope.cwd): "<workspace>"},
        redact=scope.redactor.redact,
        on_retry=warn_retry,
        warn=warn,
        read_image=BlobStore(scope.folder.blobs).read,
        plugin_models=plugins.models if plugins else {},
    )


def build_reviewer(settings: Settings, client: MeteredModel, scope: RunScope, request: str) -> Reviewer | None:
    """Return the reviewer, if a model is set for it; raises ConfigError if the approval mode needs one."""
    if not settings.reviewer_model:
        if settings.approval_mode == "review":
            raise ConfigError(NO_REVIEWER, "set reviewer_model, for example with --set reviewer_model=PROVIDER/NAME")
        return None
    from agent.execution.reviewer import ModelReviewer

    return ModelReviewer(
        client=client,
        model=settings.reviewer_model,
        request=request,
        channel=scope.channel,
        timeout_s=settings.reviewer_timeout_s,
        redact=scope.redactor.redact,
        earlier=scope.earlier_exchanges,
    )


def secret_names(settings: Settings, model: str, steps: Sequence[PlanStep]) -> tuple[str, ...]:
    """Return the names of the keys that a run with this model sends to providers."""
    others = (settings.planner_model, settings.composer_model, settings.reviewer_model)
    used = dict.fromkeys((model, *others, *(step.model for step in steps))) if model else {}
    return key_names([name for name in used if name and not name.startswith(SCRIPT_PREFIX)], settings)
