"""Hook commands in the form of Claude Code's settings: `{"hooks": {EVENT: [{matcher, hooks: [{type, command}]}]}}`."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from agent.vocabulary.errors import ConfigError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import did_you_mean
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.open_regular import read_regular

HookEvent: TypeAlias = Literal["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"]
OnFailure: TypeAlias = Literal["block", "continue"]
EVENTS: tuple[str, ...] = get_args(HookEvent)
TOOL_EVENTS = ("PreToolUse", "PostToolUse")
# Events of Claude Code without a counterpart: a file may contain them; they are reported as unused.
OTHER_EVENTS = (
    *("Notification", "SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "PermissionRequest"),
    *("PermissionDenied", "PostToolUseFailure", "Setup", "TeammateIdle", "TaskCompleted", "ConfigChange"),
    *("PostToolBatch", "StopFailure", "TaskCreated", "InstructionsLoaded", "CwdChanged", "FileChanged"),
    *("WorktreeCreate", "WorktreeRemove", "Elicitation", "ElicitationResult"),
)
DEFAULT_TIMEOUT_S = 60.0
MAX_TIMEOUT_S = 3600.0
# A matcher of these characters is a name or a list of names; any other is a regular expression.
_NAMES = lazy_pattern(r"[A-Za-z0-9_|\- ]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSpec:
    """One hook command: its event, its tools, and the effect of its failure."""

    event: HookEvent
    command: str
    source: str
    matcher: str = ""
    timeout_s: float = DEFAULT_TIMEOUT_S
    on_failure: OnFailure = "continue"

    def matches(self, *names: str) -> bool:
        """Whether the command applies to a tool or a source with one of these names."""
        if self.matcher in ("", "*"):
            return True
        if _NAMES.fullmatch(self.matcher):
            wanted = {name.strip() for name in self.matcher.split("|")}
            return not wanted.isdisjoint(names)
        return any(re.search(self.matcher, name) for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFile:
    """The hook commands of a file, and its unused entries."""

    specs: tuple[CommandSpec, ...] = ()
    unused: tuple[str, ...] = ()


def read_commands(path: Path) -> CommandFile:
    """Read a file of hook commands; a missing file has none. Raises ConfigError."""
    try:
        text = read_regular(path).decode()
    except (FileNotFoundError, NotADirectoryError):
        return CommandFile()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    return parse_commands(text, str(path))


def parse_commands(text: str, source: str) -> CommandFile:
    """Parse hook commands; anything unknown is an error, because a guard must not be skipped silently."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{source}: not valid JSON: {error}") from error
    hooks = data.get("hooks", {}) if isinstance(data, Mapping) else None
    if not isinstance(hooks, Mapping):
        raise ConfigError(f"{source}: hooks: expected an object with a list for each event")
    specs: list[CommandSpec] = []
    unused: list[str] = []
    for event, groups in hooks.items():
        if event in OTHER_EVENTS:
            unused.append(f"{source}: {event} hooks never run: Windlass has no such event")
            continue
        if event not in EVENTS:
            raise ConfigError(f"{source}: unknown event {event}{did_you_mean(event, list(EVENTS))}")
        for group in _list(groups, f"{source}: {event}"):
            for entry in _parse_group(event, group, source):
                specs.append(entry) if isinstance(entry, CommandSpec) else unused.append(entry)
    return CommandFile(specs=tuple(specs), unused=tuple(unused))


def _parse_group(event: str, group: object, source: str) -> Iterator[CommandSpec | str]:
    where = f"{source}: {event}"
    if not isinstance(group, Mapping):
        raise ConfigError(f"{where}: expected an object with matcher and hooks")
    matcher = group.get("matcher", "")
    if not isinstance(matcher, str):
        raise ConfigError(f"{where}: matcher: expected text")
    try:
        re.compile("" if matcher == "*" else matcher)
    except re.error as error:
        raise ConfigError(f"{where}: matcher {matcher!r} is not a regular expression: {error}") from error
    for entry in _list(group.get("hooks"), f"{where}: hooks"):
        if isinstance(entry, Mapping) and entry.get("type", "command") != "command":
            yield f"{where}: hooks of type {entry['type']} are not supported"
        else:
            yield _parse_command(event, matcher, entry, source)


def _parse_command(event: str, matcher: str, entry: object, source: str) -> CommandSpec:
    where = f"{source}: {event}"
    command = entry.get("command") if isinstance(entry, Mapping) else None
    if not isinstance(entry, Mapping) or not isinstance(command, str) or not command.strip():
        raise ConfigError(f"{where}: hooks: expected an object with a command")
    timeout = entry.get("timeout", DEFAULT_TIMEOUT_S)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise ConfigError(f"{where}: timeout: expected a number of seconds")
    on_failure = entry.get("onFailure", "block" if event == "PreToolUse" else "continue")
    if on_failure not in ("block", "continue"):
        raise ConfigError(f"{where}: onFailure: expected block or continue")
    return CommandSpec(
        event=event,  # type: ignore[arg-type]  # one of EVENTS
        matcher=matcher,
        command=command,
        source=source,
        # Some scripts give milliseconds.
        timeout_s=min(float(timeout), MAX_TIMEOUT_S),
        on_failure=on_failure,
    )


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise ConfigError(f"{where}: expected a list")
    return value
