"""Profiles: named rights, limits and settings, for a whole run or for single steps of a plan."""

from collections.abc import Iterable, Mapping, Sequence

from agent.config.origin import Origin, SettingValue
from agent.config.settings import ProfileSettings

_READING = ("read_file", "list_directory", "find_files", "search_text", "run_command")
# A table of this name in the user's file replaces the built-in profile.
BUILTIN_PROFILES: dict[str, ProfileSettings] = {
    "default": ProfileSettings(),
    "reviewer": ProfileSettings(allowed_tools=_READING, read_only=True, max_retries=1),
    "planner": ProfileSettings(
        allowed_tools=(*_READING, "search_web", "fetch_page", "manage_tasks", "ask_user"), read_only=True
    ),
    "developer": ProfileSettings(allowed_tools=(), max_retries=0),
}
# The settings that are also rights and limits of a step, by their name there.
_OF_STEPS = {
    "tools": "allowed_tools",
    **{name: name for name in ("read_only", "model", "instructions", "max_turns", "max_retries")},
}


def builtin_values(name: str) -> tuple[SettingValue, ...]:
    """Return the settings that a built-in profile gives to a run."""
    profile, origin = BUILTIN_PROFILES[name], Origin(layer="profile", where=f"{name} (built in)")
    given = {
        "tools": None if profile.allowed_tools is None else list(profile.allowed_tools),
        "read_only": profile.read_only or None,
    }
    return tuple(
        SettingValue(path=(setting,), value=value, origin=origin, source=f"profile {name}")
        for setting, value in given.items()
        if value is not None
    )


def step_profile_values(profiles: Mapping[str, Sequence[SettingValue]]) -> Iterable[SettingValue]:
    """Return the profiles of the user's file as profiles of steps: only their rights and limits."""
    for profile, values in profiles.items():
        for given in values:
            if len(given.path) == 1 and given.path[0] in _OF_STEPS:
                yield SettingValue(
                    path=("step_profiles", profile, _OF_STEPS[given.path[0]]),
                    value=given.value,
                    origin=given.origin,
                    source=given.source,
                    has_references=given.has_references,
                )
