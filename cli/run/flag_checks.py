"""Checks flags before anything runs: contradictions, and values that no setting accepts."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.vocabulary.errors import UsageError
from tooling.contract.fast_dataclass import dataclass

PLAN_SUFFIXES = (".toml", ".json")
PLAN_SUFFIX_ERROR = f"a plan file must end in {' or '.join(PLAN_SUFFIXES)}"
MANIFEST_SUFFIX_ERROR = f"a manifest must end in {' or '.join(PLAN_SUFFIXES)}"
HOST_HAS_NETWORK = "--allow-net has no effect with --backend host, where commands can reach every host"
PLANNER_UNUSED = "--planner-model has no effect with --plan"
STREAM_OUTPUT = "--input-format stream-json needs --output-format stream-json"
# Flags of a single task; a program that sends tasks specifies them per task.
_SINGLE_TASK = {
    "prompt": "a task",
    "files": "--file",
    "inputs": "--input",
    "repo": "--repo",
    "skills": "--skill",
    "user_command": "--command",
    "plan": "--plan",
    "plan_only": "--plan-only",
    "edit": "--edit",
    "ephemeral": "--ephemeral",
    "record": "--record",
    "replay": "--replay",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two flags that cannot be used together; with `value` only if the second one has it."""

    name: str
    other: str
    value: str | None = None
    why: str = ""


_CONFLICTS = (
    Conflict(name="record", other="replay"),
    Conflict(name="quiet", other="plain", why="there is no progress to show"),
    Conflict(name="ephemeral", other="session"),
    Conflict(name="ephemeral", other="continue_last"),
    Conflict(name="ephemeral", other="resume"),
    Conflict(name="session", other="continue_last"),
    Conflict(name="session", other="resume"),
    Conflict(name="continue_last", other="resume"),
    Conflict(name="scratch", other="cwd"),
    Conflict(name="scratch", other="continue_last"),
    Conflict(name="scratch", other="resume"),
    Conflict(name="repo", other="worktree"),
    Conflict(name="repo", other="resume"),
    Conflict(name="repo", other="continue_last"),
    Conflict(name="worktree", other="scratch"),
    Conflict(name="worktree", other="plan_only"),
    Conflict(name="worktree", other="continue_last"),
    Conflict(name="worktree", other="resume"),
    Conflict(name="require_verified", other="plan_only", why="nothing runs that could be verified"),
    Conflict(name="schema", other="plan_only", why="there is no answer"),
    Conflict(name="planning", other="plan"),
    Conflict(name="plan_only", other="planning", value="never"),
    Conflict(name="edit", other="planning", value="never"),
    Conflict(name="replan", other="planning", value="never"),
    Conflict(name="planner_model", other="planning", value="never"),
    Conflict(name="require_verified", other="planning", value="never", why="only planned steps have checks"),
    Conflict(name="on_approval", other="approval_mode", value="never", why="that mode always denies"),
    Conflict(name="allow", other="manifest", why="what is allowed is in the manifest"),
    Conflict(name="allow_net", other="manifest", why="the hosts are in the manifest"),
    Conflict(name="approval_mode", other="manifest", why="what is allowed is in the manifest"),
    Conflict(name="allow", other="skip_check", why="nothing is checked"),
    Conflict(name="deny", other="skip_check", why="nothing is checked"),
)
# Parameters whose flag has another name.
_FLAGS = {
    "continue_last": "--continue",
    "schema": "--output-schema",
    "cwd": "--cd",
    "add_dirs": "--add-dir",
    "assignments": "--set",
}
_PROMPT_SETTINGS = (
    "model",
    "reasoning",
    "planning",
    "approval_mode",
    "allow",
    "deny",
    "backend",
    "docker_image",
    "allow_net",
    "max_budget_usd",
)


def check_flags(given: Mapping[str, object]) -> None:
    """Refuse flags that contradict each other, or that have no effect."""
    _check_input_format(given)
    for conflict in _CONFLICTS:
        first, second = given.get(conflict.name), given.get(conflict.other)
        # `--worktree` without a name is an empty text.
        if first not in (None, False, [], ()) and second and conflict.value in (None, second):
            value = f" {conflict.value}" if conflict.value else ""
            why = f": {conflict.why}" if conflict.why else ""
            raise UsageError(f"{_flag(conflict.name)} cannot be used with {_flag(conflict.other)}{value}{why}")
    for name in ("branch", "shallow"):
        if given.get(name) and not given.get("repo"):
            raise UsageError(f"{_flag(name)} needs --repo")
    _check_plan_flags(given)
    _check_rules(_texts(given.get("allow")), _texts(given.get("deny")))
    _check_hosts(_texts(given.get("allow_net")))
    is_copied = given.get("continue_last") or given.get("resume") or given.get("finish") is not None
    if given.get("fork") and not is_copied:
        raise UsageError("--fork needs a session to copy", "add --continue or --resume ID")


def check_network(flags: Mapping[str, object], backend: str) -> None:
    """Refuse --allow-net for backends on which it has no effect, wherever the backend was set."""
    if flags.get("allow_net") and backend == "host":
        raise UsageError(HOST_HAS_NETWORK, "leave it out, or use --backend sandbox")


def prompt_settings(given: Mapping[str, object]) -> dict[str, object]:
    """Check the flags of the prompt, or of the session of an editor, and return those that are settings."""
    check_flags(given)
    check_network(given, str(given["backend"] or ""))
    return {name: given[name] for name in _PROMPT_SETTINGS if given[name] is not None}


def _flag(name: str) -> str:
    return _FLAGS.get(name, "--" + name.replace("_", "-"))


def _texts(value: object) -> Sequence[str]:
    return [str(text) for text in value] if isinstance(value, (list, tuple)) else []


def _check_plan_flags(given: Mapping[str, object]) -> None:
    save = given.get("save")
    if isinstance(save, Path) and save.suffix.lower() not in PLAN_SUFFIXES:
        raise UsageError(f"--save {save}: {PLAN_SUFFIX_ERROR}")
    manifest = given.get("manifest_output")
    if isinstance(manifest, str) and manifest and Path(manifest).suffix.lower() not in PLAN_SUFFIXES:
        raise UsageError(f"--manifest={manifest}: {MANIFEST_SUFFIX_ERROR}")
    if given.get("plan") and given.get("planner_model") and not given.get("replan"):
        can_replan = "replan" in given and not given.get("plan_only")
        raise UsageError(PLANNER_UNUSED, "leave it out, or add --replan surprise" if can_replan else "leave it out")


def _check_input_format(given: Mapping[str, object]) -> None:
    """Refuse flags of a single task if a program sends the tasks."""
    if given.get("input_format", "text") == "text":
        return
    if given.get("output_format") != "stream-json":
        raise UsageError(STREAM_OUTPUT, "add --output-format stream-json")
    for name, flag in _SINGLE_TASK.items():
        if given.get(name):
            raise UsageError(f"{flag} cannot be used with --input-format stream-json", "send it as a request on stdin")


def _check_rules(allow: Sequence[str], deny: Sequence[str]) -> None:
    if both := [rule for rule in allow if rule in deny]:
        raise UsageError(f"--allow and --deny contradict each other: {both[0]!r} is in both")


def _check_hosts(hosts: Sequence[str]) -> None:
    if not hosts:
        return
    from agent.backends.egress.host_rules import HostRuleInvalid, normalize_rule

    for host in hosts:
        try:
            normalize_rule(host)
        except HostRuleInvalid as error:
            hint = "write a name such as example.org, or .example.org for a whole domain"
            raise UsageError(f"--allow-net: {error}", hint) from error
