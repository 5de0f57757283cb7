"""The prompt is cut out of a body byte for byte, and a bare loop keeps everything."""

import json

from bench.mind.wire import BareLoop, changed_shares, prompt_bytes
from tests.provider.replies import Calls, Text

TOOLS = '[{"name": "x"}]'


def _body(*messages: str, tools: str = TOOLS) -> bytes:
    return f'{{"model": "m", "messages": [{",".join(messages)}], "stream": true, "tools": {tools}}}'.encode()


def test_the_prompt_is_tools_and_messages_as_they_were_sent() -> None:
    assert prompt_bytes(_body('{"a":  "]}"}')) == b'[{"name": "x"}][{"a":  "]}"}'


def test_a_request_that_continues_the_previous_one_changes_nothing() -> None:
    assert changed_shares([_body('"a"'), _body('"a"', '"b"'), _body('"a"', '"b"', '"c"')]) == [0, 0]


def test_a_different_tool_changes_everything_after_it() -> None:
    (share,) = changed_shares([_body('"a"'), _body('"a"', tools='[{"name": "y"}]')])
    assert 0 < share < 1


def test_a_bare_loop_sends_everything_again() -> None:
    first = {"model": "m", "tools": [], "messages": [{"role": "user", "content": "hi"}]}
    loop = BareLoop(first)
    loop.send()
    once = loop.bytes_sent
    loop.receive(Calls(("run_command", {"command": "ls"})), 1, ["a result"])
    loop.receive(Text("done"), 2, [])
    loop.ask("more")
    loop.send()
    assert once == len(json.dumps(first | {"stream": True}, separators=(",", ":")))
    assert loop.bytes_sent > 2 * once + len("a result" + "done" + "more")
