"""The table of settings: name, type, default, limits and description of each."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.web.settings import SEARCH_ORDER, SearchProvider

PlanningMode: TypeAlias = Literal["auto", "always", "never"]
ReplanPolicy: TypeAlias = Literal["surprise", "always", "never"]
WebReader: TypeAlias = Literal["off", "fallback", "always"]
Vision: TypeAlias = Literal["auto", "yes", "no"]
Reasoning: TypeAlias = Literal["off", "low", "medium", "high"]
SandboxType: TypeAlias = Literal["auto", "bubblewrap", "landlock"]
LogLevel: TypeAlias = Literal["debug", "info", "warning", "error", "off"]
# The settings that name a model.
MODEL_SETTINGS = ("model", "planner_model", "composer_model", "reviewer_model")
McpOffer: TypeAlias = Literal["named", "always", "never"]
ApprovalMode: TypeAlias = Literal["ask", "auto-edit", "never", "yolo", "plan", "review"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The range a numeric setting must be in."""

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
        """Return whether `number` is within the limits; nan and infinity never are."""
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
    """A named set of permissions and limits for steps."""

    allowed_tools: Annotated[tuple[str, ...] | None, "tools that steps may use; all if unset"] = None
    read_only: Annotated[bool, "like `read_only`, for steps with this profile"] = False
    model: Annotated[str, "model of the steps; `model` if unset"] = ""
    instructions: Annotated[str, "what to tell every step with this profile"] = ""
    max_turns: Annotated[int | None, "like `max_turns`, for steps with this profile", _COUNT] = None
    timeout_s: Annotated[float, "time limit for one attempt of a step", _POSITIVE] = 600.0
    max_retries: Annotated[int | None, "like `max_retries`, for steps with this profile", Limits(ge=0)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Settings that apply to one model only."""

    reasoning: Annotated[Reasoning | None, "how much this model reasons; `reasoning` if unset"] = None
    input_price: Annotated[float | None, "USD per million tokens sent; the list price if unset", Limits(ge=0)] = None
    output_price: Annotated[float | None, "USD per million tokens received; the list price if unset", Limits(ge=0)] = (
        None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRules:
    """Rules that apply in one folder only."""

    allow: Annotated[tuple[str, ...], "command prefixes that run without asking in this folder"] = ()
    deny: Annotated[tuple[str, ...], "command prefixes that never run in this folder"] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a run."""

    model: Annotated[str, "model for steps and answers, as provider/name"] = ""
    planner_model: Annotated[str, "model for planning; `model` if unset"] = ""
    composer_model: Annotated[str, "model for the final answer of a plan; `model` if unset"] = ""
    reviewer_model: Annotated[str, "model that gives an opinion on what needs approval; none if unset"] = ""
    api_base: Annotated[str, "base URL of an OpenAI-compatible server"] = ""
    api_key: Annotated[str, "API key for `api_base`; the provider's own key if unset"] = ""
    keys: Annotated[Mapping[str, str], "API keys by provider"] = field(default_factory=dict)
    api_bases: Annotated[Mapping[str, str], "base URLs by provider, instead of its own"] = field(default_factory=dict)
    vision: Annotated[Vision, "whether the model sees images; auto: unless it is known not to"] = "auto"
    temperature: Annotated[
        float | None, "sampling temperature; the provider's default if unset", Limits(ge=0, le=2)
    ] = None
    reasoning: Annotated[
        Reasoning | None, "how much models reason before they answer; the provider's default if unset"
    ] = None
    models: Annotated[Mapping[str, ModelSettings], "settings by model, named like `model`"] = field(
        default_factory=dict
    )
    max_output_tokens: Annotated[int, "maximum tokens in a reply, including its reasoning", _COUNT] = 8192
    connect_timeout_s: Annotated[float, "time limit for connecting to the provider", _POSITIVE] = 10.0
    first_byte_timeout_s: Annotated[float, "time limit for the first byte of a reply", _POSITIVE] = 120.0
    chunk_timeout_s: Annotated[float, "time limit between two chunks of a reply", _POSITIVE] = 60.0
    reply_timeout_s: Annotated[float, "time limit for a complete reply, including retries", _POSITIVE] = 900.0
    max_retries: Annotated[
        int | None,
        "at most this many retries of a request or step after a transient failure; if unset, depends on the failure",
        Limits(ge=0),
    ] = None
    backend: Annotated[Literal["sandbox", "host", "docker"], "where commands run"] = "sandbox"
    docker_image: Annotated[str, "the image of containers, with bash and python3"] = "windlass-commands"
    sandbox_type: Annotated[SandboxType, "auto is bubblewrap, or Landlock where that is not installed"] = "auto"
    allow_net: Annotated[tuple[str, ...], "hosts that commands and web tools may reach; .example.org is a domain"] = ()
    deny_net: Annotated[tuple[str, ...], "hosts that commands and web tools may never reach"] = ()
    tools: Annotated[tuple[str, ...] | None, "tools that a run may use; all if unset"] = None
    read_only: Annotated[bool, "change nothing, and run only commands that just read"] = False
    instructions: Annotated[str, "what to tell the model with every request"] = ""
    shared: Annotated[
        Literal["auto", "yes", "no"], "whether others use this place, too; auto: in CI. Stricter command rules apply"
    ] = "auto"
    approval_mode: Annotated[ApprovalMode, "when to ask for approval"] = "ask"
    on_approval: Annotated[
        Literal["deny", "defer", "fail"], "what to do when approval is needed and there is no terminal"
    ] = "deny"
    allow: Annotated[tuple[str, ...], "command prefixes that run without asking"] = ()
    deny: Annotated[tuple[str, ...], "command prefixes that never run"] = ()
    projects: Annotated[Mapping[str, ProjectRules], "rules by folder"] = field(default_factory=dict)
    approval_timeout_s: Annotated[float, "time after which an unanswered approval is denied", _POSITIVE] = 600.0
    reviewer_timeout_s: Annotated[float, "time limit for the opinion of `reviewer_model`", _POSITIVE] = 30.0
    mcp: Annotated[
        McpOffer, "when the model gets the tools of your MCP servers: if the request names a server, always, or never"
    ] = "named"
    concurrency: Annotated[int, "maximum steps running at the same time", _COUNT] = 32
    max_steps: Annotated[int, "maximum steps in a plan", _COUNT] = 50
    max_turns: Annotated[int, "maximum model turns in a step", _COUNT] = 100
    planning: Annotated[
        PlanningMode, "plan when the model finds that it pays (auto), before every task (always), or never"
    ] = "auto"
    replan: Annotated[ReplanPolicy, "when to replan the remaining steps"] = "surprise"
    max_replans: Annotated[int, "maximum number of replans in a run", Limits(ge=0)] = 3
    require_verified: Annotated[bool, "fail unless a check passed"] = False
    max_tokens: Annotated[int | None, "maximum tokens of a run", _COUNT] = None
    max_budget_usd: Annotated[float | None, "maximum cost of a run (USD)", _POSITIVE] = None
    timeout_s: Annotated[float | None, "time limit for a run", _POSITIVE] = None
    session_wait_s: Annotated[
        float, "how long to wait for a session in use when there is no terminal", Limits(ge=0)
    ] = 30.0
    command_timeout_s: Annotated[float, "time limit for one command", _POSITIVE] = 120.0
    output_trim_chars: Annotated[
        int | None,
        "tool output longer than this is trimmed for the model; unset, it grows with the model's context window",
        Limits(ge=200),
    ] = None
    web_timeout_s: Annotated[float, "time limit for one web request, including redirects", _POSITIVE] = 30.0
    web_max_bytes: Annotated[int, "pages are truncated at this size, after decompression", Limits(ge=1000)] = 5_000_000
    web_allow_loopback: Annotated[bool, "web tools may connect to this machine"] = False
    web_cache: Annotated[bool, "cache pages on disk as long as their servers allow"] = True
    web_cache_mb: Annotated[int, "maximum size of the page cache in megabytes", _COUNT] = 100
    web_robots: Annotated[bool, "obey robots.txt"] = False
    web_host_connections: Annotated[int, "maximum simultaneous requests to one host", _COUNT] = 8
    web_host_pause_s: Annotated[float, "pause between two requests to one host", Limits(ge=0)] = 0.0
    web_reader: Annotated[WebReader, "when to fetch a page through a reader service"] = "fallback"
    web_reader_url: Annotated[str, "URL prefix of a reader service; Jina's if its key is set"] = ""
    fetch_max_chars: Annotated[int, "maximum characters of a page that the model sees", Limits(ge=2000)] = 80_000
    memory: Annotated[bool, "use the memory, and let runs add to it"] = True
    memory_max_kb: Annotated[int, "a larger memory is compacted at the end of a run", _COUNT] = 32
    memory_compact_target_kb: Annotated[int, "size of the memory after compaction", _COUNT] = 24
    memory_timeout_s: Annotated[float, "time limit for deciding what to remember from a run", _POSITIVE] = 10.0
    hooks: Annotated[tuple[str, ...], "hook classes of yours, each as module:Class"] = ()
    hook_env: Annotated[tuple[str, ...], "variables that hook commands get besides harmless ones"] = ()
    callback_url: Annotated[str, "URL that the events of a run are posted to"] = ""
    callback_token: Annotated[str, "bearer token for `callback_url`"] = ""
    otel_endpoint: Annotated[str, "OTLP receiver of traces, metrics and logs, such as http://localhost:4318"] = ""
    otel_content: Annotated[bool, "export the texts of replies, and arguments and results of tool calls"] = False
    log_level: Annotated[LogLevel, "what is written to the log file; `agent logs` shows it"] = "info"
    project_notes: Annotated[bool, "read the workspace's AGENTS.md and CLAUDE.md as data"] = True
    search_order: Annotated[tuple[SearchProvider, ...], "search providers to use, in this order"] = SEARCH_ORDER
    search_fanout: Annotated[
        int, "search providers queried at the same time; their results are merged", Limits(ge=1, le=6)
    ] = 1
    search_urls: Annotated[Mapping[str, str], "URLs by search provider; proxy and searxng need one"] = field(
        default_factory=dict
    )
    search_timeout_s: Annotated[
        float | None, "time limit for one search request; the provider's default if unset", _POSITIVE
    ] = None
    editing_mode: Annotated[Literal["emacs", "vi"], "key bindings of the interactive prompt"] = "emacs"
    language: Annotated[str, "language of messages and help, such as ru; English if unset"] = ""
    theme: Annotated[Literal["auto", "dark", "light"], "colors for light or dark backgrounds; auto reads COLORFGBG"] = (
        "auto"
    )
    terminal_title: Annotated[bool, "whether the interactive prompt sets the title of the terminal's window"] = True
    plugins: Annotated[Mapping[str, Mapping[str, object]], "settings of plugins by name; enabled = false skips one"] = (
        field(default_factory=dict)
    )
    service: Annotated[Mapping[str, object], "settings of queue, workers and service"] = field(default_factory=dict)
    claude_skills: Annotated[bool, "also use the skills in ~/.claude/skills"] = False
    step_profiles: Annotated[Mapping[str, ProfileSettings], "named permissions and limits for steps"] = field(
        default_factory=dict
    )
