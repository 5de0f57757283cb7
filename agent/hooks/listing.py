"""Lists the hooks that apply in a folder, and tries them on a made-up event."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from agent.config.settings import Settings
from agent.config.user_dirs import data_path, hooks_file
from agent.hooks.command_config import EVENTS, TOOL_EVENTS, CommandSpec, read_commands
from agent.hooks.command_hook import CommandHook, HookPlace
from agent.hooks.hook import GuardedCall, GuardHook
from agent.hooks.load import find_class_hooks
from agent.hooks.trust import TrustStore, read_project_hooks
from agent.vocabulary.errors import ConfigError, UsageError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject, did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRow:
    """One hook of a listing; `state` is active, or the reason why it is not."""

    event: str
    name: str
    source: str
    matcher: str = ""
    timeout_s: float | None = None
    state: str = "active"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """Decision of a hook about an event."""

    name: str
    decision: str
    reason: str = ""
    context: str = ""
    arguments: JsonObject | None = None


def list_hooks(settings: Settings, environ: Mapping[str, str], folder: Path) -> list[HookRow]:
    """Return all hooks of the user, of packages and of a folder. Raises ConfigError."""
    rows = [
        HookRow(event="*", name=found.name, source=found.source, state=found.problem or "active")
        for found in find_class_hooks(settings.hooks)
    ]
    rows += [_command_row(spec, "active") for spec in read_commands(hooks_file(environ)).specs]
    return rows + list(_project_rows(environ, folder))


def unused_hooks(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the entries of the user's hooks file that have no effect. Raises ConfigError."""
    return read_commands(hooks_file(environ)).unused


def _project_rows(environ: Mapping[str, str], folder: Path) -> Iterator[HookRow]:
    try:
        project = read_project_hooks(folder)
    except ConfigError as error:
        yield HookRow(event="*", name="", source=str(folder), state=error.message)
        return
    status = TrustStore(data_path(environ)).status(project)
    for spec in project.specs:
        yield _command_row(
            spec, "active" if status == "trusted" else "not trusted" if status == "untrusted" else status
        )


def _command_row(spec: CommandSpec, state: str) -> HookRow:
    return HookRow(
        event=spec.event,
        matcher=spec.matcher,
        name=spec.command,
        source=spec.source,
        timeout_s=spec.timeout_s,
        state=state,
    )


async def try_hooks(
    settings: Settings, environ: Mapping[str, str], folder: Path, event: str, call: GuardedCall, text: str
) -> list[TrialResult]:
    """Run the user's hooks for a made-up event, and nothing else. Raises UsageError, ConfigError."""
    if event not in EVENTS:
        raise UsageError(f"unknown event {event}{did_you_mean(event, list(EVENTS))}", f"events: {', '.join(EVENTS)}")
    place = HookPlace(
        session_id="test",
        transcript=folder / "events.jsonl",
        cwd=lambda: folder,
        approval_mode=settings.approval_mode,
        model=settings.model,
        environ=environ,
        extra_variables=settings.hook_env,
    )
    guards: list[GuardHook] = [
        found.hook for found in find_class_hooks(settings.hooks) if isinstance(found.hook, GuardHook)
    ]
    guards += [CommandHook(spec, place) for spec in read_commands(hooks_file(environ)).specs if spec.event == event]
    project = read_project_hooks(folder)
    if TrustStore(data_path(environ)).status(project) == "trusted":
        guards += [CommandHook(spec, place, is_restricted=True) for spec in project.specs if spec.event == event]
    return [await _try(guard, event, call, text) for guard in guards]


async def _try(guard: GuardHook, event: str, call: GuardedCall, text: str) -> TrialResult:
    if event in TOOL_EVENTS and isinstance(guard, CommandHook) and not guard.is_for(call):
        return TrialResult(name=guard.name, decision="no match", reason=f"it is for {guard.spec.matcher}")
    try:
        match event:
            case "PreToolUse":
                found = await guard.check_call(call)
                decision = "pass" if found.permission == "allow" and guard.is_restricted else found.permission
                return TrialResult(
                    name=guard.name,
                    decision=decision,
                    reason=found.reason,
                    context=found.context,
                    arguments=found.arguments,
                )
            case "PostToolUse":
                return TrialResult(name=guard.name, decision="pass", context=await guard.comment_on_call(call, text))
            case "Stop":
                reason = await guard.check_answer(text, is_repeated=False)
                return TrialResult(name=guard.name, decision="deny" if reason else "pass", reason=reason)
            case "SessionEnd":
                await guard.after_execution(success=True, error=None)
                return TrialResult(name=guard.name, decision="pass")
            case _:
                answer = await guard.check_prompt(text)
                decision = "deny" if answer.refusal else "pass"
                return TrialResult(name=guard.name, decision=decision, reason=answer.refusal, context=answer.context)
    except Exception as error:  # noqa: BLE001 (the edge: this is how a hook fails, which the user wants to see)
        return TrialResult(name=guard.name, decision="failed", reason=str(error))
