"""`@tool`: schema, effect and result of a typed async function."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

import pytest

from tests.tooling.test_registry import SERVICES
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
