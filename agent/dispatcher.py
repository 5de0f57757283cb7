"""Which rights and limits a step runs with."""

from dataclasses import replace

from agent.config.settings import Settings
from agent.vocabulary.errors import ConfigError
from agent.vocabulary.plan import LEAD, PlanStep
from agent.vocabulary.step import CHECK_TOOL, ExecutorProfile
from tooling.contract.json_codec import did_you_mean

_NO_LIMIT_MS = 7 * 24 * 3600 * 1000
READ_ONLY_TOOLS = ("read_file", "list_directory", "find_files", "search_text", "run_command")


class Dispatcher:
    """Finds the profile of each step among the built-in ones and the user's."""

    def __init__(self, settings: Settings, tools: tuple[str, ...]) -> None:
        # It works as long as the run: the limits of the run apply.
        self._lead = ExecutorProfile(
            name=LEAD, timeout_ms=_NO_LIMIT_MS, max_retries=settings.max_retries, max_turns=settings.max_turns
        )
        self._profiles = _builtin_profiles(settings) | _configured_profiles(settings)
        for profile in self._profiles.values():
            for tool in profile.allowed_tools or ():
                if tool not in tools:
                    problem = f"step profile {profile.name!r} names the unknown tool {tool!r}"
                    raise ConfigError(problem + did_you_mean(tool, list(tools)), "`agent tools list` shows the tools")

    @property
    def profiles(self) -> tuple[str, ...]:
        """Return the names of all profiles."""
        return tuple(self._profiles)

    def profile_of(self, step: PlanStep) -> ExecutorProfile:
        """Return the step's profile, its tools narrowed to those the step may use."""
        if step.id == LEAD:
            return self._lead
        profile = self._profiles.get(step.profile, self._profiles["default"])
        profile = replace(profile, may_check=profile.allowed_tools is None or CHECK_TOOL in profile.allowed_tools)
        if step.allowed_tools is None:
            return profile
        allowed = step.allowed_tools
        if profile.allowed_tools is not None:
            allowed = tuple(tool for tool in allowed if tool in profile.allowed_tools)
        return replace(profile, allowed_tools=allowed)


def _builtin_profiles(settings: Settings) -> dict[str, ExecutorProfile]:
    turns, retries = settings.max_turns, settings.max_retries
    reviewer = ExecutorProfile(
        name="reviewer", allowed_tools=READ_ONLY_TOOLS, max_retries=0 if retries == 0 else 1, max_turns=turns
    )
    developer = ExecutorProfile(name="developer", allowed_tools=(), max_retries=0, max_turns=turns)
    return {
        "default": ExecutorProfile(max_retries=retries, max_turns=turns),
        "reviewer": reviewer,
        "developer": developer,
    }


def _configured_profiles(settings: Settings) -> dict[str, ExecutorProfile]:
    return {
        name: ExecutorProfile(
            name=name,
            allowed_tools=profile.allowed_tools,
            timeout_ms=int(profile.timeout_s * 1000),
            max_retries=settings.max_retries if profile.max_retries is None else profile.max_retries,
            max_turns=settings.max_turns,
        )
        for name, profile in settings.step_profiles.items()
    }
