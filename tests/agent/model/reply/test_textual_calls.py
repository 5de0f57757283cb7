"""Tool calls that a model writes into its text."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.model.reply.textual_calls import extract_calls

KNOWN = ("read_file", "write_file", "run_command")
CALL = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
READ = ("read_file", {"path": "a.txt"})


def read(text: str) -> tuple[str, list[tuple[str, object]]]:
    rest, calls = extract_calls(text, KNOWN)
    assert all(call.problem is None for call in calls)
    return rest, [(call.name, call.arguments) for call in calls]


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"  {CALL}\n",
        json.dumps(json.loads(CALL), indent=2),
        f"[{CALL}]",
        f"```json\n{CALL}\n```",
        f"```\n{CALL}\n```",
        f"```tool_call\n{CALL}\n```",
        f"```xml\n<tool_call>\n{CALL}\n</tool_call>\n```",
        f"```json\n{CALL}",
        f"```json {CALL}```",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"<tool_call>{CALL}",
        f"<tool_call>\n```json\n{CALL}\n```\n</tool_call>",
        '<function=read_file>{"path": "a.txt"}</function>',
        '<function=read_file>{"path": "a.txt"}',
        "<tool_call>\n<function=read_file>\n<parameter=path>\na.txt\n</parameter>\n</function>\n</tool_call>",
        f"[TOOL_CALLS][{CALL}]",
        f"[TOOL_CALLS] {CALL}",
        '[TOOL_CALLS]read_file[ARGS]{"path": "a.txt"}',
        '{"name": "read_file", "parameters": {"path": "a.txt"}}',
        '{"tool": "read_file", "arguments": {"path": "a.txt"}}',
        '{"tool_name": "read_file", "arguments": {"path": "a.txt"}}',
        '{"type": "function", "function": {"name": "read_file", "arguments": "{\\"path\\": \\"a.txt\\"}"}}',
        f'{{"tool_calls": [{CALL}]}}',
        "```json\n{'name': 'read_file', 'arguments': {'path': 'a.txt',}}\n```",
        '{"name": "read_file", "arguments": {"path": "a.txt"}',
    ],
)
def test_every_common_format_of_a_call_is_parsed(text: str) -> None:
    assert read(text) == ("", [READ])


@pytest.mark.parametrize(
    "text",
    [
        "no call at all, only the words read_file and {braces}",
        f"Send {CALL} to read it.",
        f"{CALL} is how you read a file.",
        "```json\n" + CALL.replace("read_file", "get_weather") + "\n```\nThat reads read_file.",
        f"```python\nread_file = {CALL}\n{CALL}\n```",
        '```json\n{"name": "read_file", "version": 2}\n```',
        '{"name": "read_file", "description": "Read a file.", "parameters": {"type": "object"}}',
        '{"title": "read_file", "items": [1, 2]}',
        "Use the <tool_call> tag for read_file.",
        '<function=other>{"path": "read_file"}</function>',
    ],
)
def test_text_without_a_call_is_unchanged(text: str) -> None:
    assert read(text) == (text, [])


def test_text_around_a_call_is_preserved() -> None:
    text = f"I will read it.\n\n```json\n{CALL}\n```\n\nThen I will tell you."
    assert read(text) == ("I will read it.\n\nThen I will tell you.", [READ])


def test_several_calls_keep_their_order() -> None:
    other = '{"name": "run_command", "arguments": {"command": "ls"}}'
    ran = ("run_command", {"command": "ls"})
    assert read(f"```json\n{CALL}\n{other}\n```") == ("", [READ, ran])
    assert read(f"<tool_call>\n{other}\n</tool_call>\n<tool_call>\n{CALL}\n</tool_call>") == ("", [ran, READ])
    assert read(f"first\n{other}\n\nthen\n```\n{CALL}\n```") == ("first\n\nthen", [ran, READ])


def test_an_unknown_tool_among_known_ones_remains_text() -> None:
    unknown = '{"name": "dance", "arguments": {}}'
    assert read(f"```json\n[{CALL}, {unknown}]\n```") == (unknown, [READ])


def test_arguments_may_contain_fences_and_tags() -> None:
    content = "# Title\n```python\nprint()\n```\n<tool_call>\n</tool_call>\n"
    call = json.dumps({"name": "write_file", "arguments": {"path": "a.md", "content": content}})
    raw = call.replace("\\n", "\n")
    for text in (f"```json\n{call}\n```", f"```json\n{raw}\n```", f"<tool_call>{raw}</tool_call>"):
        assert read(text) == ("", [("write_file", {"path": "a.md", "content": content})])


def test_a_call_that_cannot_be_parsed_has_a_problem() -> None:
    broken = '{"name": "write_file", "arguments": {"path": "a.txt", "content": "half'
    for text in (broken, f"```json\n{broken}\n```", f"<tool_call>{broken}</tool_call>"):
        rest, calls = extract_calls(text, KNOWN)
        assert rest == ""
        assert [call.name for call in calls] == ["write_file"]
        assert "end inside a string" in (calls[0].problem or "")


def test_arguments_that_are_not_an_object_are_a_problem() -> None:
    _, calls = extract_calls('{"name": "read_file", "arguments": ["a.txt"]}', KNOWN)
    assert "are a list" in (calls[0].problem or "")


def test_each_call_gets_a_unique_id() -> None:
    _, calls = extract_calls(f"{CALL}\n{CALL}", KNOWN)
    assert len({call.id for call in calls}) == 2
    assert all(call.id.startswith("call_") and len(call.id) == 13 for call in calls)


def test_text_after_an_unclosed_fence_is_preserved() -> None:
    assert read(f"```json\n{CALL}\nDone, as you asked.") == ("Done, as you asked.", [READ])


PIECES = [CALL, "```", "```json\n", "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "{", "[", "\n", "WORD"]


@example(["<tool_call>", "```", "WORD", CALL])
@given(st.lists(st.sampled_from(PIECES)))
def test_no_mixture_raises_or_loses_text(parts: list[str]) -> None:
    text = "".join(parts)
    rest, calls = extract_calls(text, KNOWN)
    assert rest.count("WORD") == text.count("WORD")
    assert rest.count("read_file") + len(calls) == text.count("read_file")


@pytest.mark.parametrize("text", ["<tools></tools>", " <tool_call>\n</tool_call>\n"])
def test_an_empty_block_for_calls_is_removed(text: str) -> None:
    assert extract_calls(text, {"run_command"}) == ("", ())
