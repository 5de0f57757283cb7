"""Parses the decision of a hook command from its exit code and output."""

import json
from collections.abc import Mapping

from agent.hooks.command_config import CommandSpec
from agent.hooks.hook import HookFailed, Permission
from tooling.contract.command import CommandOutput
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject
from tooling.output import decode_output, sanitize_output

BLOCKS = 2
_TEXT_IS_CONTEXT = ("UserPromptSubmit", "SessionStart")
_PERMISSIONS: Mapping[object, Permission] = {
    "allow": "allow",
    "approve": "allow",
    "ask": "ask",
    "defer": "ask",
    "deny": "deny",
    "block": "deny",
}
MAX_TEXT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HookReply:
    """The decision of a hook command.

    `permission` "deny" blocks the action, and `reason` explains it. `context` is for the model, `message` for
    the user. `stop` ends the run, with its reason.
    """

    permission: Permission = "pass"
    reason: str = ""
    context: str = ""
    message: str = ""
    updated_input: JsonObject | None = None
    stop: str | None = None


def read_reply(spec: CommandSpec, output: CommandOutput) -> HookReply:
    """Return the decision of a finished command. Raises HookFailed."""
    stdout, stderr = _text(output.output), _text(output.stderr)
    if output.timed_out:
        raise HookFailed(f"did not end within {spec.timeout_s:g} s")
    if output.exit_code == BLOCKS:
        return HookReply(permission="deny", reason=stderr or stdout)
    if output.exit_code != 0:
        why = f": {_last_line(stderr or stdout)}" if stderr or stdout else ""
        raise HookFailed(f"ended with exit code {output.exit_code}{why}")
    if stdout.startswith("{"):
        return _parse_reply(spec, stdout)
    return HookReply(context=stdout if spec.event in _TEXT_IS_CONTEXT else "")


def _parse_reply(spec: CommandSpec, stdout: str) -> HookReply:
    try:
        data = json.loads(stdout)
    except ValueError as error:
        raise HookFailed(f"printed JSON that cannot be read: {error}") from error
    specific = data.get("hookSpecificOutput")
    inner = specific if isinstance(specific, Mapping) else {}
    decision = inner.get("permissionDecision", data.get("decision"))
    if decision is not None and decision not in _PERMISSIONS:
        raise HookFailed(f"decided {decision!r}, which is neither allow, ask, deny nor block")
    updated = inner.get("updatedInput", data.get("updatedInput"))
    if updated is not None and not isinstance(updated, Mapping):
        raise HookFailed("printed an updatedInput that is not an object")
    is_stop = data.get("continue") is False
    return HookReply(
        permission=_PERMISSIONS[decision] if decision is not None else "deny" if is_stop else "pass",
        reason=_field(inner, "permissionDecisionReason") or _field(data, "reason") or _field(data, "stopReason"),
        context=_field(inner, "additionalContext") or _field(data, "additionalContext"),
        message=_field(data, "systemMessage"),
        updated_input=updated,
        stop=(_field(data, "stopReason") or "it gave no reason") if is_stop else None,
    )


def _field(data: Mapping[str, object], name: str) -> str:
    value = data.get(name)
    return value.strip() if isinstance(value, str) else ""


def _text(data: bytes) -> str:
    return sanitize_output(decode_output(data)).strip()


def _last_line(text: str) -> str:
    return text.splitlines()[-1][:300]
