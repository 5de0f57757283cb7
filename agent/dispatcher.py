"""Permissions and limits of steps."""

from dataclasses import replace

from agent.config.profiles import BUILTIN_PROFILES
from agent.config.settings import ProfileSettings, Settings
from agent.vocabulary.errors import ConfigError
from agent.vocabulary.plan import LEAD, PLAN_TOOL, PlanStep
from agent.vocabulary.step import CHECK_TOOL, ExecutorProfile
from tooling.contract.json_codec import did_you_mean

_NO_LIMIT_MS = 7 * 24 * 3600 * 1000
_MCP_PREFIX = "mcp__"


class Dispatcher:
    """Finds the profile of each step among the built-in and the user's ones; the profile of the run limits them all."""

    def __init__(self, settings: Settings, tools: tuple[str, ...]) -> None:
        self._run_tools = settings.tools
        _check_known("the setting tools", settings.tools, tools)
        # The lead runs as long as the run, so the limits of the run apply.
        self._lead = ExecutorProfile(
            name=LEAD,
            # Steps delegated by the lead have no more permissions than the lead.
            allowed_tools=(*settings.tools, PLAN_TOOL) if settings.tools else settings.tools,
            read_only=settings.read_only,
            timeout_ms=_NO_LIMIT_MS,
            max_retries=settings.max_retries,
            max_turns=settings.max_turns,
        )
        for name, profile in settings.step_profiles.items():
            _check_known(f"the profile {name!r}", profile.allowed_tools, tools)
        self._profiles = {
            name: _executor_profile(name, profile, settings)
            for name, profile in (BUILTIN_PROFILES | dict(settings.step_profiles)).items()
        }

    @property
    def profiles(self) -> tuple[str, ...]:
        """Return the names of all profiles."""
        return tuple(self._profiles)

    def profile_of(self, step: PlanStep) -> ExecutorProfile:
        """Return the step's profile, its tools narrowed to those that the run and the step may use."""
        if step.id == LEAD:
            return self._lead
        profile = self._profiles.get(step.profile, self._profiles["default"])
        allowed = _narrow(profile.allowed_tools, self._run_tools)
        tools, may_check = _narrow(step.allowed_tools, allowed), allowed is None or CHECK_TOOL in allowed
        is_same = (tools, may_check) == (profile.allowed_tools, profile.may_check)
        return profile if is_same else replace(profile, allowed_tools=tools, may_check=may_check)


def _narrow(tools: tuple[str, ...] | None, limit: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the tools within a limit; None means all of them."""
    if tools is None or limit is None:
        return limit if tools is None else tools
    return tuple(tool for tool in tools if tool in limit)


def _check_known(where: str, named: tuple[str, ...] | None, tools: tuple[str, ...]) -> None:
    for tool in named or ():
        # The tools of a server that has not started yet are unknown.
        if tool not in tools and not tool.startswith(_MCP_PREFIX):
            problem = f"{where} names the unknown tool {tool!r}"
            raise ConfigError(problem + did_you_mean(tool, list(tools)), "`agent tools list` shows the tools")


def _executor_profile(name: str, profile: ProfileSettings, settings: Settings) -> ExecutorProfile:
    retries = profile.max_retries
    return ExecutorProfile(
        name=name,
        allowed_tools=profile.allowed_tools,
        read_only=profile.read_only or settings.read_only,
        model=profile.model,
        instructions=profile.instructions,
        timeout_ms=int(profile.timeout_s * 1000),
        max_retries=settings.max_retries if retries is None or settings.max_retries == 0 else retries,
        max_turns=profile.max_turns or settings.max_turns,
    )
