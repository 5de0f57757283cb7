"""The tool itself and the executor that is the only door to it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from tooling.contract.action import Action, ActionGate, Effect
from tooling.contract.command import CommandRunner
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.jobs import Jobs
from tooling.contract.json_codec import JsonObject
from tooling.contract.memory import Memory
from tooling.contract.question import Asker
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.web import NoWeb, Web

P = TypeVar("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What a tool offers: the name and words a model reads, and the rights and limits we hold it to.

    `timeout_ms` 0 means that the tool keeps its own clock. `output_chars` is for tools that page their own output;
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
        """Say whether calls of one turn may overlap: only reading ones do."""
        return self.effect in ("read", "web")

    def to_openai_tool(self) -> dict[str, object]:
        """Return the function schema every provider understands."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCommand:
    """A slash command that a tool offers to the person: a call with `args`; what is typed behind goes to `argument`."""

    name: str
    help: str
    args: JsonObject = field(default_factory=dict)
    argument: str = ""


class DenyFurtherActions:
    """ActionGate no call anything beyond what it was called for."""

    async def refusal(self, action: Action, ctx: ExecCtx) -> str | None:
        """Refuse."""
        return f"Denied: {action.tool} may not go on to {action.subject}."


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServices:
    """The ports and limits a tool may use; handed to every tool at construction."""

    runner: CommandRunner
    asker: Asker
    jobs: Jobs
    command_timeout_s: float = 120.0
    web: Web = field(default_factory=NoWeb)
    memory: Memory | None = None
    action_gate: ActionGate = field(default_factory=DenyFurtherActions)


class Tool(ABC, Generic[P]):
    """One tool: a spec, a parameter dataclass (its schema is the model's), and a deed."""

    spec: ClassVar[ToolSpec]
    params: type[P]
    commands: ClassVar[tuple[ToolCommand, ...]] = ()

    def __init__(self, services: ToolServices) -> None:
        self._services = services

    @classmethod
    def is_offered(cls, services: ToolServices) -> bool:
        """Say whether a run with these services has a use for the tool."""
        return True

    @abstractmethod
    async def run(self, params: P, ctx: ExecCtx) -> ToolResult:
        """Do it; an exception becomes a result with exit code 1 on the one road."""

    def with_subject(self, params: P, subject: str) -> P:
        """Return the parameters with the person's own subject in place of the model's, where a tool allows that."""
        raise ToolError(f"{self.spec.name} cannot be changed, only allowed or denied.")

    def action(self, params: P, ctx: ExecCtx) -> Action:
        """Return what this call is about to do, for the judge and the person; by default, something in the folder."""
        return Action(tool=self.spec.name, effect=self.spec.effect, subject=".", cwd=ctx.working_dir)


# Tools differ in their parameter class only; a list of them is the one place where that is forgotten.
AnyTool: TypeAlias = Tool[Any]


def schema_name(schema: Mapping[str, object]) -> str:
    """Return the name of the tool that a function schema describes."""
    function = schema.get("function")
    return str(function.get("name")) if isinstance(function, Mapping) else ""


class ToolExecutor(Protocol):
    """The only door from the agent loop to the tools. Host, sandbox and container backends implement it."""

    async def call_tool(self, name: str, args: JsonObject, ctx: ExecCtx) -> ToolResult:
        """Run one call and return its result; never raises."""
        ...

    def schemas(self) -> list[Mapping[str, object]]:
        """Return the tool schemas a model may be shown."""
        ...

    def has_tool(self, name: str) -> bool:
        """Say whether `schemas` holds this name."""
        ...

    def spec_of(self, name: str) -> ToolSpec | None:
        """Return the spec of a tool, for rights and concurrency."""
        ...

    async def close(self) -> None:
        """End everything that calls left running."""
        ...
