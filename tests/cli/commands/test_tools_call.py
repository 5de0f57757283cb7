"""`agent tools call`: calls any tool as the model would."""

import json

import pytest

from agent.vocabulary.errors import UsageError
from cli.tool_arguments import parse_arguments
from tests.cli.terminal_user import User
from tooling.contract.tool import ToolSpec

SPEC = ToolSpec(
    name="sample",
    description="",
    parameters={
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "deep": {"type": "boolean"},
            "names": {"type": "array", "items": {"type": "string"}},
            "table": {"type": "object"},
        },
    },
)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ((), {}),
        (("text=a=b c",), {"text": "a=b c"}),
        (("text=",), {"text": ""}),
        (("text=12", "count=12", "share=0.5"), {"text": "12", "count": 12, "share": 0.5}),
        (("deep=yes",), {"deep": True}),
        (("deep=False",), {"deep": False}),
        (("names=one",), {"names": ["one"]}),
        (("names=one", "names=two"), {"names": ["one", "two"]}),
        (('names:=["one","two"]', 'table:={"a": 1}'), {"names": ["one", "two"], "table": {"a": 1}}),
        (("count:=3", "other=x"), {"count": 3, "other": "x"}),
    ],
)
def test_arguments_are_parsed_by_the_schema(words: tuple[str, ...], arguments: dict[str, object]) -> None:
    assert parse_arguments(words, SPEC) == arguments


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("text", "is not an argument"),
        ("=x", "is not an argument"),
        (":=1", "is not an argument"),
        ("count=many", "count: expected a whole number, got 'many'"),
        ("share=x", "share: expected a number"),
        ("deep=maybe", "deep: expected true or false"),
        ("table=x", "table is an object"),
        ("table:={", "table: "),
    ],
)
def test_an_invalid_argument_is_named(word: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_arguments((word,), SPEC)


def test_an_argument_cannot_be_given_twice() -> None:
    with pytest.raises(UsageError, match="text is given twice"):
        parse_arguments(("text=a", "text=b"), SPEC)


@pytest.mark.slow
def test_the_output_is_the_text_the_model_would_read(user: User) -> None:
    (user.home / "notes.txt").write_text("one\ntwo\n")
    ended = user.agent("tools", "call", "read_file", "path=notes.txt", "limit=1")
    assert (ended.exit_code, ended.stdout.splitlines()[0], ended.stderr) == (0, "one", "")


@pytest.mark.slow
def test_json_output_has_status_and_exit_code(user: User) -> None:
    ended = user.agent("tools", "call", "search_text", "pattern=nothing", "--json")
    assert json.loads(ended.stdout) == {
        "tool": "search_text",
        "status": "ok",
        "exit_code": 0,
        "content": "No matches for 'nothing' in '.'.",
    }


@pytest.mark.slow
def test_a_failed_call_prints_to_stderr_and_sets_the_exit_code(user: User) -> None:
    ended = user.agent("tools", "call", "run_command", "command=echo no; exit 3")
    assert (ended.exit_code, ended.stdout, ended.stderr.splitlines()[-1]) == (3, "", "Exit 3: no")


@pytest.mark.slow
def test_it_works_in_the_given_folder(user: User) -> None:
    (user.home / "work").mkdir()
    flags = ("-C", "work", "--approval-mode", "auto-edit")
    ended = user.agent("tools", "call", "write_file", "path=new.txt", "content=here", *flags, "--json")
    assert (user.home / "work" / "new.txt").read_text() == "here"
    assert [change["path"] for change in ended.document["changes"]] == ["new.txt"]  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("write_file", "path=x", "content=y"), 57, "Denied by policy"),
        (("run_command", "command=rm -rf /"), 57, "BLOCKED"),
        (("read_file", "path=/etc/passwd"), 57, "BLOCKED"),
        (("read_file", "paht=x"), 2, "did you mean path?"),
        (("read_fiel", "path=x"), 2, "did you mean read_file?"),
        (("read_file", "path"), 2, "is not an argument"),
    ],
)
def test_calls_forbidden_to_the_model_are_forbidden_to_the_user(
    user: User, words: tuple[str, ...], code: int, problem: str
) -> None:
    ended = user.agent("tools", "call", *words)
    assert (ended.exit_code, ended.stdout, problem in ended.stderr) == (code, "", True)


@pytest.mark.slow
def test_it_leaves_no_session_behind(user: User) -> None:
    user.agent("tools", "call", "list_directory")
    assert list(user.data.glob("sessions/*")) == []
