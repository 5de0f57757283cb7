"""Every setting with its type, default, limits and meaning; the table that loading, checking and showing share."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.web.settings import SEARCH_ORDER, SearchProvider

ReplanPolicy: TypeAlias = Literal["surprise", "always", "never"]
WebReader: TypeAlias = Literal["off", "fallback", "always"]
ApprovalMode: TypeAlias = Literal["ask", "auto-edit", "never", "yolo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The numbers a setting may hold."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None

    def __str__(self) -> str:
        parts = [
            f"at least {self.ge:g}" if self.ge is not None else "",
            f"more than {self.gt:g}" if self.gt is not None else "",
            f"at most {self.le:g}" if self.le is not None else "",
        ]
        return " and ".join(part for part in parts if part)

    def allows(self, number: float) -> bool:
        """Say whether `number` is within the limits; nan and infinity never are."""
        return (
            abs(number) < float("inf")
            and (self.ge is None or number >= self.ge)
            and (self.gt is None or number > self.gt)
            and (self.le is None or number <= self.le)
        )


_COUNT = Limits(ge=1)
_POSITIVE = Limits(gt=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSettings:
    """A named set of rights and limits for steps."""

    allowed_tools: Annotated[tuple[str, ...] | None, "tools steps may use; all when not set"] = None
    timeout_s: Annotated[float, "time limit of one attempt of a step", _POSITIVE] = 600.0
    max_retries: Annotated[int, "further attempts after a transient failure", Limits(ge=0)] = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRules:
    """Rules that hold only for work in one folder."""

    allow: Annotated[tuple[str, ...], "command prefixes that run unasked in this folder"] = ()
    deny: Annotated[tuple[str, ...], "command prefixes that never run in this folder"] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a run."""

    model: Annotated[str, "provider/name of the model that works and answers"] = ""
    planner_model: Annotated[str, "model that plans; the working model when not set"] = ""
    api_base: Annotated[str, "address of an OpenAI-compatible server"] = ""
    api_key: Annotated[str, "key for `api_base`; the provider's own variable is used when not set"] = ""
    keys: Annotated[Mapping[str, str], "keys by provider name"] = field(default_factory=dict)
    temperature: Annotated[
        float | None, "sampling temperature; the provider's default when not set", Limits(ge=0, le=2)
    ] = None
    max_output_tokens: Annotated[int, "longest reply asked for", _COUNT] = 8192
    connect_timeout_s: Annotated[float, "time limit to reach the provider", _POSITIVE] = 10.0
    first_byte_timeout_s: Annotated[float, "time limit until the first byte of a reply", _POSITIVE] = 120.0
    chunk_timeout_s: Annotated[float, "time limit between two fragments of a reply", _POSITIVE] = 60.0
    backend: Annotated[Literal["sandbox", "host"], "where commands run"] = "sandbox"
    allow_net: Annotated[tuple[str, ...], "hosts that commands and web tools may reach; .example.org is a domain"] = ()
    deny_net: Annotated[tuple[str, ...], "hosts that commands and web tools may never reach"] = ()
    approval_mode: Annotated[ApprovalMode, "when a person is asked"] = "ask"
    on_approval: Annotated[Literal["deny", "defer", "fail"], "what happens to an approval without a terminal"] = "deny"
    allow: Annotated[tuple[str, ...], "command prefixes that run unasked"] = ()
    deny: Annotated[tuple[str, ...], "command prefixes that never run"] = ()
    projects: Annotated[Mapping[str, ProjectRules], "rules by folder"] = field(default_factory=dict)
    approval_timeout_s: Annotated[float, "an approval nobody answers is denied after this time", _POSITIVE] = 600.0
    concurrency: Annotated[int, "steps at the same time", _COUNT] = 32
    max_steps: Annotated[int, "most steps in a plan", _COUNT] = 50
    max_turns: Annotated[int, "most model turns in a step", _COUNT] = 50
    replan: Annotated[ReplanPolicy, "when the rest of a plan is made again"] = "surprise"
    max_replans: Annotated[int, "how often a plan may be made again in a run", Limits(ge=0)] = 3
    require_verified: Annotated[bool, "a run whose checks did not pass, or that has none, is no success"] = False
    max_tokens: Annotated[int | None, "most tokens of a run", _COUNT] = None
    max_budget_usd: Annotated[float | None, "most money of a run", _POSITIVE] = None
    timeout_s: Annotated[float | None, "wall-clock limit of a run", _POSITIVE] = None
    session_wait_s: Annotated[float, "how long a run without a terminal waits for a busy session", Limits(ge=0)] = 30.0
    command_timeout_s: Annotated[float, "time limit of one command", _POSITIVE] = 120.0
    output_trim_chars: Annotated[int, "tool output beyond this is trimmed for the model", Limits(ge=200)] = 3000
    web_timeout_s: Annotated[float, "time limit of one web request of a tool, redirects included", _POSITIVE] = 30.0
    web_max_bytes: Annotated[int, "a page beyond this size, unpacked, is cut", Limits(ge=1000)] = 5_000_000
    web_allow_loopback: Annotated[bool, "web tools may reach this machine itself"] = False
    web_cache: Annotated[bool, "keep pages on disk as long as their servers allow it"] = True
    web_cache_mb: Annotated[int, "most megabytes of kept pages", _COUNT] = 100
    web_robots: Annotated[bool, "heed what sites ask of robots (robots.txt)"] = False
    web_host_connections: Annotated[int, "requests to one host at the same time", _COUNT] = 8
    web_host_pause_s: Annotated[float, "pause between two requests to one host", Limits(ge=0)] = 0.0
    web_reader: Annotated[WebReader, "when a reader service is asked for a page"] = "fallback"
    web_reader_url: Annotated[str, "a reader service: the page's address is added to its own; Jina's by its key"] = ""
    fetch_max_chars: Annotated[int, "most characters of a page that the model sees", Limits(ge=2000)] = 80_000
    memory: Annotated[bool, "what is remembered is read, and a run may add to it"] = True
    memory_max_kb: Annotated[int, "a larger memory is made shorter at the end of a run", _COUNT] = 32
    memory_compact_target_kb: Annotated[int, "how short it is made then", _COUNT] = 24
    memory_timeout_s: Annotated[float, "time limit to decide what to remember of a run", _POSITIVE] = 10.0
    project_notes: Annotated[bool, "AGENTS.md and CLAUDE.md of the folder are read as data"] = True
    search_order: Annotated[tuple[SearchProvider, ...], "search providers that are asked, in this order"] = SEARCH_ORDER
    search_fanout: Annotated[
        int, "search providers asked at the same time; their results are merged", Limits(ge=1, le=6)
    ] = 1
    search_urls: Annotated[Mapping[str, str], "addresses by search provider; proxy and searxng have no other"] = field(
        default_factory=dict
    )
    search_timeout_s: Annotated[
        float | None, "time limit of one search request; each provider has its own when not set", _POSITIVE
    ] = None
    editing_mode: Annotated[Literal["emacs", "vi"], "how the interactive prompt is edited"] = "emacs"
    theme: Annotated[Literal["auto", "dark", "light"], "colours of the prompt; auto asks COLORFGBG"] = "auto"
    step_profiles: Annotated[Mapping[str, ProfileSettings], "rights and limits of steps by name"] = field(
        default_factory=dict
    )
