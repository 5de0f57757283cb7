"""Tools, and the executor through which all of them are called."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from tooling.contract.action import Action, ActionGate, Effect
from tooling.contract.command import CommandRunner
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.jobs import Jobs
from tooling.contract.json_codec import JsonObject, decode
from tooling.contract.memory import Memory
from tooling.contract.question import Asker
from tooling.contract.result import TaskItem, ToolError, ToolResult
from tooling.contract.scheduler import TaskScheduler
from tooling.contract.secrets import NoSecrets, Secrets
from tooling.contract.web import NoWeb, Web

P = TypeVar("P")
SavedTasks: TypeAlias = Callable[[ExecCtx], Sequence[TaskItem]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """The description of a tool for the model, and the effect and limits of its calls.

    `timeout_ms` 0 means that the tool enforces its own timeout. `output_chars` is for tools that page their own output;
    None trims at the run's setting.
    """

    name: str
    description: str
    parameters: JsonObject
    effect: Effect = "read"
    timeout_ms: int = 120_000
    requires_approval: bool = False
    output_chars: int | None = None
    tags: tuple[str, ...] = ()

    @property
    def parallelizable(self) -> bool:
        """Return whether calls of one turn may run concurrently: only those that read."""
        return self.effect in ("read", "web")

    def to_openai_tool(self) -> dict[str, object]:
        """Return the function schema that all providers understand."""
        parameters = _without_defaults(self.parameters)
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCommand:
    """A slash command for users that calls a tool with `args`; the text after it becomes the parameter `argument`."""

    name: str
    help: str
    args: JsonObject = field(default_factory=dict)
    argument: str = ""


class DenyFurtherActions:
    """An action gate that refuses every further action of a call."""

    async def refusal(self, action: Action, ctx: ExecCtx) -> str | None:
        """Refuse."""
        return f"Denied: {action.tool} may not go on to {action.subject}."


def no_saved_tasks(ctx: ExecCtx) -> Sequence[TaskItem]:
    """Return an empty list."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServices:
    """The ports and limits that every tool receives when it is created.

    `saved_tasks` returns the to-do list of an earlier run of the session.
    """

    runner: CommandRunner
    asker: Asker
    jobs: Jobs
    command_timeout_s: float = 120.0
    web: Web = field(default_factory=NoWeb)
    memory: Memory | None = None
    scheduler: TaskScheduler | None = None
    action_gate: ActionGate = field(default_factory=DenyFurtherActions)
    secrets: Secrets = field(default_factory=NoSecrets)
    saved_tasks: SavedTasks = no_saved_tasks


class Tool(ABC, Generic[P]):
    """A tool: its spec, a dataclass of its parameters (the source of its JSON schema), and the code that runs."""

    spec: ToolSpec
    params: type[P]
    commands: ClassVar[tuple[ToolCommand, ...]] = ()

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    def parse_arguments(self, args: object) -> P:
        """Return the parameters of a call; raise DecodeError for arguments that do not fit."""
        return decode(self.params, args)

    @abstractmethod
    async def run(self, params: P, ctx: ExecCtx) -> ToolResult:
        """Run the call; the invoker converts an exception to a result with exit code 1."""

    def with_subject(self, params: P, subject: str) -> P:
        """Return the parameters with the subject as edited by the user; raise ToolError if the tool allows no edits."""
        raise ToolError(f"{self.spec.name} cannot be changed, only allowed or denied.")

    def action(self, params: P, ctx: ExecCtx) -> Action:
        """Return the action of this call, for the judge and the user; by default its subject is the working folder."""
        return Action(tool=self.spec.name, effect=self.spec.effect, subject=".", cwd=ctx.working_dir)


# A tool with any parameter class, for collections of tools.
AnyTool: TypeAlias = Tool[Any]


def _without_defaults(schema: object) -> object:
    """Remove schema parts that cost tokens and that no model needs: calls are validated here anyway."""
    if isinstance(schema, Mapping):
        is_default = {"additionalProperties": False, "required": []}
        return {key: _without_defaults(value) for key, value in schema.items() if is_default.get(key, ...) != value}
    return [_without_defaults(item) for item in schema] if isinstance(schema, (list, tuple)) else schema


def schema_name(schema: Mapping[str, object]) -> str:
    """Return the name of the tool that a function schema describes."""
    function = schema.get("function")
    return str(function.get("name")) if isinstance(function, Mapping) else ""


class ToolExecutor(Protocol):
    """Calls tools for the agent loop. Host, sandbox and container backends implement it."""

    async def call_tool(self, name: str, args: JsonObject, ctx: ExecCtx) -> ToolResult:
        """Run one call and return its result; never raises."""
        ...

    def schemas(self) -> list[Mapping[str, object]]:
        """Return the schemas of the tools that a model may call."""
        ...

    def has_tool(self, name: str) -> bool:
        """Return whether `schemas` contains this name."""
        ...

    def spec_of(self, name: str) -> ToolSpec | None:
        """Return the spec of a tool, or None if it is unknown."""
        ...

    async def close(self) -> None:
        """Stop background work of calls."""
        ...
