"""Readable errors for arguments that do not match a tool's schema."""

import pytest

from tooling.contract.schema_errors import find_schema_error
from tooling.tool_catalog import load_catalog

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "deep": {"type": "boolean"},
        "kind": {"type": "string", "enum": ["file", "folder"]},
        "names": {"type": "array", "items": {"type": "string"}},
        "inner": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        "any": {},
        "either": {"type": ["string", "null"]},
    },
    "required": ["path"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"count": 3},
        {"share": 0.5},
        {"share": 2},
        {"deep": True},
        {"kind": "file"},
        {"names": []},
        {"names": ["a"]},
        {"inner": {"x": 1, "y": 2}},
        {"any": [1, {"a": None}]},
        {"either": None},
    ],
)
def test_valid_arguments_have_no_error(extra: dict[str, object]) -> None:
    assert find_schema_error({"path": "a", **extra}, SCHEMA, "args") is None


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("x", 'args: expected a table of named values, got "x"'),
        ({}, "args.path is missing"),
        ({"path": 3}, "args.path: expected text, got 3"),
        ({"path": "a", "count": "3"}, 'args.count: expected a whole number, got "3"'),
        ({"path": "a", "count": True}, "args.count: expected a whole number, got true"),
        ({"path": "a", "count": 1.5}, "args.count: expected a whole number, got 1.5"),
        ({"path": "a", "share": float("nan")}, "args.share: expected a number, got NaN"),
        ({"path": "a", "deep": "yes"}, 'args.deep: expected true or false, got "yes"'),
        ({"path": "a", "kind": "files"}, 'args.kind: expected one of file, folder, got "files", did you mean file?'),
        ({"path": "a", "names": "b"}, 'args.names: expected a list, got "b"'),
        ({"path": "a", "names": ["b", 2]}, "args.names[2]: expected text, got 2"),
        ({"path": "a", "inner": {}}, "args.inner.x is missing"),
        ({"path": "a", "pth": 1}, "unknown name args.pth, did you mean path?"),
        ({"path": "a", "either": 1}, "args.either: expected text or nothing, got 1"),
    ],
)
def test_an_invalid_argument_is_reported_with_its_path(value: object, problem: str) -> None:
    assert find_schema_error(value, SCHEMA, "args") == problem


def test_an_unknown_name_without_a_similar_one_lists_the_valid_names() -> None:
    schema = {"type": "object", "properties": {"path": {}, "depth": {}}, "additionalProperties": False}
    assert find_schema_error({"zzz": 1}, schema, "args") == "unknown name args.zzz; known names: path, depth"


def test_the_schemas_of_the_built_in_tools_are_supported() -> None:
    specs = {spec.name: spec for spec in load_catalog().specs}
    schema = specs["run_command"].parameters
    assert find_schema_error({"command": "ls", "timeout_s": 3, "background": False}, schema, "args") is None
    assert find_schema_error({"cmd": "ls"}, schema, "args") == "unknown name args.cmd, did you mean command?"
