"""`@tool`: schema, effect and result of a typed async function."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

import pytest

from agent.backends.backend import Backend
from agent.backends.host import HostCommandRunner
from agent.backends.tool_executor import build_tool_executor
from tests.tooling.test_registry import SERVICES
from tests.tooling.tool_harness import NoUser
from tooling.approvals.policy import PolicyApprover
from tooling.contract.context import ExecCtx
from tooling.contract.function_tool import NotATool, tool
from tooling.contract.json_codec import decode
from tooling.contract.result import ToolResult
from tooling.contract.tool import AnyTool

CTX = ExecCtx(user_id=UUID(int=1), task_id=UUID(int=2), working_dir=Path("/w"), step_id="s1")


@tool
async def search_notes(
    words: str, limit: int = 5, order: Literal["new", "old"] = "new", tags: tuple[str, ...] = ()
) -> list[str]:
    """Search the notes.

    Newest first.

    Args:
        words: what to look for
        limit (int): at most this many
    """
    return [f"{words} {limit} {order} {len(tags)}"]


async def call(tool_class: type[AnyTool], **arguments: object) -> ToolResult:
    made = tool_class(SERVICES)
    return await made.run(decode(made.params, arguments), CTX)


def test_name_description_and_schema_come_from_the_function() -> None:
    spec = search_notes.spec
    assert (spec.name, spec.description) == ("search_notes", "Search the notes.\n\nNewest first.")
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "words": {"type": "string", "description": "what to look for"},
            "limit": {"type": "integer", "description": "at most this many"},
            "order": {"type": "string", "enum": ["new", "old"]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["words"],
        "additionalProperties": False,
    }


async def test_a_call_gets_defaults_and_returns_json() -> None:
    assert (await call(search_notes, words="tea")).content == '["tea 5 new 0"]'


@tool
async def label(
    names: list[str],
    colors: list[str] | None = None,
    sizes: Sequence[int] = (),
    unique: set[str] | None = None,
    options: dict | None = None,  # type: ignore[type-arg]
    rest: list = [],  # type: ignore[type-arg]  # noqa: B006
    level: Literal[1, 2] = 1,
) -> dict[str, object]:
    """Put labels on things."""
    rest.append("seen")
    unique_names = sorted(unique or ())
    return {"names": names, "colors": colors, "sizes": sizes, "unique": unique_names, "options": options, "rest": rest}


def test_lists_sets_and_objects_have_the_schema_that_a_python_developer_expects() -> None:
    texts = {"type": "array", "items": {"type": "string"}}
    assert label.spec.parameters["properties"] == {
        "names": texts,
        "colors": texts,
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "unique": texts,
        "options": {"type": "object"},
        "rest": {"type": "array"},
        "level": {"type": "integer", "enum": [1, 2]},
    }


async def test_lists_arrive_as_lists_and_a_default_is_not_shared_between_calls() -> None:
    await call(label, names=[])
    result = await call(label, names=["a"], colors=["red"], sizes=[1], unique=["x", "x"], options={"k": [1]})
    assert json.loads(result.content) == {
        "names": ["a"],
        "colors": ["red"],
        "sizes": [1],
        "unique": ["x"],
        "options": {"k": [1]},
        "rest": ["seen"],
    }


def test_without_an_effect_every_call_needs_approval_and_shows_its_arguments() -> None:
    made = search_notes(SERVICES)
    assert (made.spec.effect, made.spec.requires_approval) == ("note", True)
    subject = made.action(decode(made.params, {"words": "tea"}), CTX).subject
    assert subject == 'search_notes {"words": "tea", "limit": 5, "order": "new", "tags": []}'


async def test_the_context_is_no_argument_and_the_path_is_what_a_reading_call_is_about() -> None:
    @tool(effect="read")
    async def where(path: Annotated[str, "a file"], ctx: ExecCtx) -> str:
        """Tell where it is.

        :param path: not used, the annotation wins
        """
        return f"{path} {ctx.step_id}"

    made = where(SERVICES)
    assert made.spec.parameters["properties"] == {"path": {"type": "string", "description": "a file"}}
    assert made.action(decode(made.params, {"path": "a.txt"}), CTX).subject == "a.txt"
    assert (made.spec.requires_approval, (await call(where, path="a.txt")).content) == (False, "a.txt s1")


async def test_an_argument_may_be_a_dataclass_and_a_result_a_tool_result() -> None:
    @dataclass(frozen=True)
    class Point:
        x: int
        y: int = 0

    @tool(name="norm")
    async def length(point: Point) -> ToolResult:
        """Measure."""
        return ToolResult(str(point.x + point.y), exit_code=3)

    result = await call(length, point={"x": 2})
    assert (length.spec.name, result.content, result.exit_code) == ("norm", "2", 3)


async def undocumented(a: int) -> None: ...


def not_async(a: int) -> None:
    """Do it."""


async def untyped(a) -> None:  # type: ignore[no-untyped-def]
    """Do it."""


async def variadic(*words: str) -> None:
    """Do it."""


async def odd_type(a: bytes) -> None:
    """Do it."""


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (undocumented, "has no docstring"),
        (not_async, "is not an async function"),
        (untyped, "the parameter a has no type"),
        (variadic, "cannot be given by name"),
        (odd_type, "has no JSON form"),
    ],
)
def test_a_function_that_cannot_be_a_tool_says_why(function: object, problem: str) -> None:
    with pytest.raises(NotATool, match=problem):
        tool(function)  # type: ignore[call-overload]


def test_a_subject_that_is_no_parameter_is_refused() -> None:
    with pytest.raises(NotATool, match="no parameter 'path'"):
        tool(effect="read", subject="path")(odd_subject)


async def odd_subject(file: str) -> None:
    """Do it."""


@tool(effect="note")
async def leave() -> str:
    """Leave the program, as scripts do."""
    raise SystemExit(9)


async def test_a_tool_that_exits_fails_and_the_program_stays() -> None:
    executor, _ = build_tool_executor(
        Backend(name="host", runner=HostCommandRunner({})),
        approver=PolicyApprover(mode="auto-edit"),
        asker=NoUser(),
        plugin_tools=(leave,),
    )
    result = await executor.call_tool("leave", {}, CTX)
    assert result.content == "leave failed: SystemExit: 9"
    await executor.close()
