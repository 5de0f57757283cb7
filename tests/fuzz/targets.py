"""The fuzz targets: each takes bytes, and may raise nothing but the errors that its reader documents."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from agent.config.load import load_settings
from agent.model.faults import ModelFault
from agent.model.port import ModelRequest
from agent.model.reply.reply_builder import ReplyBuilder
from agent.model.wire.anthropic_stream import AnthropicReader
from agent.model.wire.openai_stream import OpenAiReader
from agent.model.wire.sse import SseParser
from agent.planning.capabilities import Capabilities
from agent.planning.manifest_file import parse_manifest, toml_manifest
from agent.planning.plan_file import parse_plan
from agent.planning.plan_reader import PlanReader
from agent.sessions.log.event_log import FileLog, last_seq, read_events
from agent.vocabulary.errors import AgentError
from tests.tooling.tool_harness import TASK, USER
from tooling.contract.action import Action, Decision
from tooling.contract.context import ExecCtx
from tooling.safety.action_judge import ActionJudge

Target = Callable[[bytes], None]
_WORKSPACE = Path("/srv/project")
_CTX = ExecCtx(user_id=USER, task_id=TASK, working_dir=_WORKSPACE)
_JUDGE = ActionJudge()
_REQUEST = ModelRequest(model="m", messages=(), purpose="step")
_EVENT: dict[str, object] = {
    "v": 1,
    "type": "warning",
    "ts": "2026-01-01T00:00:00.000Z",
    "seq": 7,
    "session_id": "s",
    "run_id": "r",
    "message": "x",
}


def bash(data: bytes) -> None:
    """Judge a command: a verdict for everything, and the same one twice."""
    action = Action(tool="run_command", effect="execute", subject=data.decode(errors="replace"), cwd=_WORKSPACE)
    verdict = _JUDGE.judge(action, _CTX)
    assert verdict.decision in Decision
    assert _JUDGE.judge(action, _CTX).decision is verdict.decision


def sse(data: bytes) -> None:
    """Read a stream on both wires; how it is split makes no difference."""
    whole, pieces = SseParser(), SseParser()
    events = [*whole.feed(data), *whole.finish()]
    split = [event for byte in data for event in pieces.feed(bytes((byte,)))]
    assert [*split, *pieces.finish()] == events
    for wire in (OpenAiReader, AnthropicReader):
        builder = ReplyBuilder(_REQUEST, lambda model, usage: None)
        reader = wire(builder)
        try:
            for event in events:
                reader.read(event)
            reader.finish()
            builder.build()
        except ModelFault as fault:
            assert str(fault)


def plan_file(data: bytes) -> None:
    """Read a plan file as TOML and as JSON."""
    for name in ("plan.toml", "plan.json"):
        try:
            parse_plan(data.decode(errors="replace"), name=name, default_request="x", capabilities=Capabilities())
        except AgentError as error:
            assert error.message


def plan_reply(data: bytes) -> None:
    """Read the steps of a reply; how it is split makes no difference."""
    text = data.decode(errors="replace")
    whole, pieces = PlanReader(), PlanReader()
    steps = whole.feed(text)
    assert [step for letter in text for step in pieces.feed(letter)] == steps
    assert whole.finish(text) == pieces.finish(text)


def manifest(data: bytes) -> None:
    """Read a manifest; what was read can be written and read again."""
    try:
        found = parse_manifest(data.decode(errors="replace"), name="m.toml")
    except AgentError:
        return
    assert parse_manifest(toml_manifest(found), name="m.toml") == found


def event_log(data: bytes) -> None:
    """Read a damaged log and append to it: what was appended can be read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        path.write_bytes(data)
        path.chmod(0o600)
        list(read_events(path))
        last_seq(path)
        log = FileLog(path)
        line = json.dumps(_EVENT).encode() + b"\n"
        log.append(line)
        log.close()
        assert path.read_bytes().endswith(line)
        assert [envelope.seq for envelope in read_events(path)][-1] == _EVENT["seq"]


def config(data: bytes) -> None:
    """Read a settings file."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.toml").write_bytes(data)
        try:
            load_settings(environ={"HOME": folder}, config_dir=Path(folder))
        except AgentError as error:
            assert error.message


TARGETS: dict[str, Target] = {
    "bash": bash,
    "sse": sse,
    "plan_file": plan_file,
    "plan_reply": plan_reply,
    "manifest": manifest,
    "event_log": event_log,
    "config": config,
}
# What inputs are made of, besides random bytes: pieces of valid ones.
PIECES: dict[str, tuple[bytes, ...]] = {
    "bash": (
        *b"echo ls ; && || | $( ) ` \" ' ${x:- } <<EOF EOF > 2>&1 ( (( [[ ]] { esac if then fi for do done".split(),
        *b"\\ $'x' & ! eval curl ~ * ? = $ # function coproc time [ ] trap history fc .".split(),
        *(b" ", b"\n", b"rm -rf", b"git push", b"sh -c", b"case x in"),
    ),
    "sse": (
        *(b"data: ", b"event: ", b"error: ", b"\n", b"\n\n", b"\r\n", b"[DONE]", b": ping", b"\xef\xbb\xbf"),
        *(b'{"choices": [{"delta": {"content": "x"}}]}', b'{"usage": {"prompt_tokens": 1e400}}', b"null", b"{", b"[["),
        *(b'{"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{"}}]}}]}',),
        *(b'{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}',),
        *(b'{"type": "message_start", "message": {}}', b'{"type": "message_stop"}', b"-1", b'{"type": "error"}'),
    ),
    "plan_file": (
        b"[[steps]]\n",
        b'id = "a"\n',
        b"depends_on = ",
        b'["a"]\n',
        b'{"steps": [',
        b"]}",
        b'"id"',
        b"{",
        b",",
    ),
    "plan_reply": (
        b'{"steps": [',
        b'{"id": "a"}',
        b",",
        b"]",
        b"}",
        b'"plan": [',
        b"```json\n",
        b"{",
        b'"',
        b"\\",
        b"answer",
    ),
    "manifest": (
        b"version = 1\n",
        b"programs = [",
        b'"git push"',
        b"]\n",
        b"hosts = [",
        b'".a.org"',
        b"max_usd = ",
        b"1",
        b"inf",
    ),
    "event_log": (json.dumps(_EVENT).encode(), b"\n", b'{"v": 1, "type": "', b"}", b'"seq": -1', b"\0", b"[" * 50),
    "config": (
        b"model = ",
        b'"x"\n',
        b"[profiles.a]\n",
        b"allow = ",
        b"[",
        b"]",
        b"keys.openai = ",
        b"${HOME}",
        b"=",
        b"1e9\n",
    ),
}
