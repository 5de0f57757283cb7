"""Decodes commands from JSON lines, with which programs drive a session."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from agent.protocol.codec import CodecError
from agent.protocol.commands import AnswerQuestion, ResolveApproval, Steer, Submit
from agent.vocabulary.task_config import TaskConfig
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import DecodeError, JsonObject, decode, did_you_mean
from tooling.contract.lazy_pattern import lazy_pattern

# As in W3C Trace Context.
_TRACE = lazy_pattern("[0-9a-f]{32}")
_ONLY_TEXT = 'message.content: only text blocks are supported; use {"type": "request", "attachments": […]} for files'


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    """Stop the current run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """End the session after the requests sent so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRun:
    """Resume an unfinished run of any session; finished steps are not repeated. Other fields are as for a request."""

    run_id: str
    config: TaskConfig | None = None
    task_id: str = ""
    trace_id: str = ""


LineCommand: TypeAlias = Submit | ResumeRun | ResolveApproval | AnswerQuestion | Steer | Interrupt | End


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    text: str
    attachments: tuple[Path, ...] = ()
    config: TaskConfig | None = None
    task_id: str = ""
    trace_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Approve:
    approval_id: str
    decision: Literal["allow", "deny", "edit"]
    command: str | None = None
    remember: Literal["run", "project", "always"] | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _UserMessage:
    role: Literal["user"]
    content: object


def parse_command(line: bytes) -> LineCommand:
    """Parse one line; raises CodecError if it is not a command."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CodecError(f"not JSON: {error}") from error
    if not isinstance(data, dict):
        raise CodecError("not an object")
    kind = str(data.pop("type", ""))
    if kind not in _PARSERS:
        known = ", ".join(_PARSERS)
        raise CodecError(f"unknown type {kind!r}{did_you_mean(kind, _PARSERS)}; known types: {known}")
    try:
        return _PARSERS[kind](data)
    except DecodeError as error:
        raise CodecError(f"{kind}: {error}") from error


def _parse_request(data: JsonObject) -> Submit:
    request = decode(_Request, data)
    _check_trace(request.trace_id)
    submit = _submit(request.text, request.attachments)
    return replace(submit, config=request.config, task_id=request.task_id, trace_id=request.trace_id)


def _parse_resume(data: JsonObject) -> ResumeRun:
    resume = decode(ResumeRun, data)
    _check_trace(resume.trace_id)
    return resume


def _check_trace(trace_id: str) -> None:
    if trace_id and not _TRACE.fullmatch(trace_id):
        raise DecodeError("trace_id: expected 32 hexadecimal digits in lower case")


def _parse_user(data: JsonObject) -> Submit:
    """Parse a user message in Claude Code's format; other fields are ignored."""
    if "message" not in data:
        raise DecodeError("missing field message (object)")
    message = decode(_UserMessage, data["message"], location="message", extra="ignore")
    if isinstance(message.content, str):
        return _submit(message.content)
    blocks = message.content if isinstance(message.content, list) else [None]
    texts = [block.get("text") for block in blocks if isinstance(block, Mapping) and block.get("type") == "text"]
    if len(texts) < len(blocks) or not all(isinstance(text, str) for text in texts):
        raise DecodeError(_ONLY_TEXT)
    return _submit("\n\n".join(map(str, texts)))


def _submit(text: str, files: tuple[Path, ...] = ()) -> Submit:
    if not text.strip():
        raise DecodeError("the text is empty")
    if "\0" in text:
        raise DecodeError("the text contains a NUL character")
    return Submit(prompt=text.strip(), files=files)


def _parse_approval(data: JsonObject) -> ResolveApproval:
    given = decode(_Approve, data)
    if (given.decision == "edit") != (given.command is not None):
        raise DecodeError("command is the edited command: it goes with the decision edit")
    if given.remember and given.decision != "allow":
        raise DecodeError("only the decision allow can be remembered")
    return ResolveApproval(
        approval_id=given.approval_id,
        decision="deny" if given.decision == "deny" else "allow",
        scope=given.remember or "once",
        remark=given.remark,
        command=given.command,
    )


_PARSERS: Mapping[str, Callable[[JsonObject], LineCommand]] = {
    "request": _parse_request,
    "user": _parse_user,
    "resume": _parse_resume,
    "answer": lambda data: decode(AnswerQuestion, data),
    "approve": _parse_approval,
    "steer": lambda data: decode(Steer, data),
    "interrupt": lambda data: decode(Interrupt, data),
    "end": lambda data: decode(End, data),
}
