"""Extract tool calls that a model wrote into its text, as models or servers without native calls do."""

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping

from agent.model.reply.call_arguments import parse_arguments
from agent.vocabulary.message import ToolCall
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern

_OPENING = lazy_pattern(
    r"""(?P<tag><(?:tool_call|function_call|tools)>)
      | (?P<function><function=["']?(?P<name>[\w.-]+)["']?>)
      | (?P<mistral>\[TOOL_CALLS\])
      | (?P<fence>^[ \t]*```+(?P<language>[\w-]*)[ \t]*\n?)
      | (?P<bare>^[ \t]*(?=[{\[]))""",
    re.MULTILINE | re.VERBOSE,
)
_CALL_LANGUAGES = frozenset({"", "json", "tool_call", "tool_calls", "tool_code", "function_call", "xml"})
_FENCE_IN_TAG = lazy_pattern(rf"\s*(?:```+(?:{'|'.join(sorted(_CALL_LANGUAGES, reverse=True))})(?![\w-])\s*)?")
_FENCE_END = lazy_pattern(r"\s*(?:```+|\Z)")
_NEXT_FENCE = lazy_pattern(r"^[ \t]*```+[ \t]*$", re.MULTILINE)
_LINE_END = lazy_pattern(r"[ \t]*(?:\n|\Z)")
_TAG_END = lazy_pattern(r"(?:\s*```+)?\s*</(?:tool_call|function_call|tools)>")
_FUNCTION_END = lazy_pattern(r"\s*</function>(?:\s*</tool_call>)?")
_PARAMETER = lazy_pattern(r"<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_MISTRAL_NAME = lazy_pattern(r"\s*([\w.-]+)\s*(?:\[ARGS\])?\s*(?=\{)")
_HEAD = lazy_pattern(
    r"""\s*\{\s*["'](?:name|tool|tool_name)["']\s*:\s*["']([\w.-]+)["']\s*,\s*["'](?:arguments|parameters)["']"""
)
_LEFTOVER = lazy_pattern(
    rf"^[ \t]*```+(?:{'|'.join(sorted(_CALL_LANGUAGES - {''}))})?\s*```+[ \t]*$|</?tool_call>", re.MULTILINE
)
# A small model may open and close a block for calls without any call: treated as no text.
_EMPTY = lazy_pattern(r"\s*<(tools|tool_call|function_call)>\s*</\1>\s*")
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Region:
    """A range of text that contains calls; `remainder` is the rest of it."""

    end: int
    calls: tuple[ToolCall, ...]
    remainder: str = ""


def extract_calls(text: str, known: Collection[str]) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the text without calls of known tools, and those calls."""
    if _EMPTY.fullmatch(text):
        return "", ()
    if not any(name in text for name in known):
        return text, ()
    parts: list[str] = []
    calls: list[ToolCall] = []
    copied_until = position = 0
    while opening := _OPENING.search(text, position):
        region = _parse_region(text, opening, known)
        if region is None:
            position = _next_position(text, opening)
            continue
        parts += [text[copied_until : opening.start()], region.remainder]
        calls += region.calls
        copied_until = position = region.end
    if not calls:
        return text, ()
    return _strip_leftovers("\n".join([*(part for part in parts if part), text[copied_until:]])), tuple(calls)


def _strip_leftovers(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", _LEFTOVER.sub("", text)).strip()


def _next_position(text: str, opening: re.Match[str]) -> int:
    """Return where to continue: after a code block in another language, or just after the opening."""
    if opening["fence"] is not None and opening["language"].lower() not in _CALL_LANGUAGES:
        closing = _NEXT_FENCE.search(text, opening.end())
        return closing.end() if closing else len(text)
    return max(opening.end(), opening.start() + 1)


def _parse_region(text: str, opening: re.Match[str], known: Collection[str]) -> _Region | None:
    if opening["tag"]:
        return _parse_tagged(text, opening.end(), known)
    if opening["function"]:
        return _parse_function(text, opening, known)
    if opening["mistral"]:
        return _parse_mistral(text, opening.end(), known)
    if opening["fence"] is not None:
        return _parse_fenced(text, opening, known)
    return _parse_bare(text, opening.end(), known)


def _parse_tagged(text: str, start: int, known: Collection[str]) -> _Region | None:
    start = _skip(_FENCE_IN_TAG, text, start)
    items, end = _decode_values(text, start)
    if items:
        return _region_from_items(items, _skip(_TAG_END, text, end), known, explicit=True)
    if not text.startswith("{", start):
        return None
    closing = _TAG_END.search(text, start)
    body_end, end = (closing.start(), closing.end()) if closing else (len(text), len(text))
    return _region_from_broken(text[start:body_end], end, known, explicit=True)


def _parse_function(text: str, opening: re.Match[str], known: Collection[str]) -> _Region | None:
    name = opening["name"]
    if name not in known:
        return None
    items, end = _decode_values(text, opening.end())
    if items:
        call = _build_call(name, items[0])
        return _Region(end=_skip(_FUNCTION_END, text, end), calls=(call,))
    closing = _FUNCTION_END.search(text, opening.end())
    body_end, end = (closing.start(), closing.end()) if closing else (len(text), len(text))
    body = text[opening.end() : body_end]
    parameters: object = dict(_PARAMETER.findall(body))
    return _Region(end=end, calls=(_build_call(name, parameters or body),))


def _parse_mistral(text: str, start: int, known: Collection[str]) -> _Region | None:
    named = _MISTRAL_NAME.match(text, start)
    if named and named[1] in known:
        items, end = _decode_values(text, named.end())
        if items:
            return _Region(end=end, calls=(_build_call(named[1], items[0]),))
        return _Region(end=len(text), calls=(_build_call(named[1], text[named.end() :]),))
    items, end = _decode_values(text, start)
    return _region_from_items(items, end, known, explicit=True)


def _parse_fenced(text: str, opening: re.Match[str], known: Collection[str]) -> _Region | None:
    if opening["language"].lower() not in _CALL_LANGUAGES:
        return None
    # Decode the values before looking for the closing fence: a file's content may contain fences.
    items, end = _decode_values(text, opening.end())
    if items:
        closing = _FENCE_END.match(text, end) or _LINE_END.match(text, end)
        if closing is None:
            return None
        return _region_from_items(items, closing.end(), known, explicit=False)
    closing = _NEXT_FENCE.search(text, opening.end())
    body_end, end = (closing.start(), closing.end()) if closing else (len(text), len(text))
    return _region_from_broken(text[opening.end() : body_end], end, known, explicit=False)


def _parse_bare(text: str, start: int, known: Collection[str]) -> _Region | None:
    items, end = _decode_values(text, start)
    if not items:
        return _region_from_broken(text[start:], len(text), known, explicit=False) if _HEAD.match(text, start) else None
    return _region_from_items(items, end, known, explicit=False) if _LINE_END.match(text, end) else None


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


def _decode_values(text: str, position: int) -> tuple[list[object], int]:
    """Decode consecutive JSON objects and lists; return them and the end of the last one."""
    values: list[object] = []
    end = position
    while (start := _skip(re.compile(r"[\s,;]*"), text, end)) < len(text) and text[start] in "{[":
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            break
        values.append(value)
    return values, end


def _region_from_items(items: list[object], end: int, known: Collection[str], *, explicit: bool) -> _Region | None:
    calls: list[ToolCall] = []
    remainder: list[str] = []
    for item in _flatten(items):
        call = _parse_call(item, known, explicit=explicit)
        if call:
            calls.append(call)
        else:
            remainder.append(json.dumps(item, ensure_ascii=False))
    return _Region(end=end, calls=tuple(calls), remainder="\n".join(remainder)) if calls else None


def _region_from_broken(body: str, end: int, known: Collection[str], *, explicit: bool) -> _Region | None:
    """Repair an object that is not quite JSON, or return a call with a problem to report to the model."""
    value, problem = parse_arguments(body)
    if problem is None:
        return _region_from_items([value], end, known, explicit=explicit)
    head = _HEAD.match(body)
    if head is None or head[1] not in known:
        return None
    return _Region(end=end, calls=(ToolCall(id=_fresh_id(), name=head[1], problem=problem),))


def _flatten(items: list[object]) -> Iterator[object]:
    for item in items:
        if isinstance(item, list):
            yield from _flatten(item)
        elif isinstance(item, dict) and isinstance(item.get("tool_calls"), list):
            yield from _flatten(item["tool_calls"])
        else:
            yield item


def _parse_call(item: object, known: Collection[str], *, explicit: bool) -> ToolCall | None:
    if not isinstance(item, dict):
        return None
    fields: Mapping[str, object] = item["function"] if isinstance(item.get("function"), dict) else item
    name = next((fields[key] for key in ("name", "tool", "tool_name", "function") if fields.get(key)), None)
    key = next((key for key in ("arguments", "parameters") if key in fields), None)
    # A description means this is a tool's schema, which small models tend to repeat.
    if not isinstance(name, str) or name not in known or "description" in fields or not (key or explicit):
        return None
    return _build_call(name, fields[key] if key else None)


def _build_call(name: str, given: object) -> ToolCall:
    text = given if isinstance(given, str) else "" if given is None else json.dumps(given)
    arguments, problem = parse_arguments(text)
    return ToolCall(id=_fresh_id(), name=name, arguments=arguments, problem=problem)


def _fresh_id() -> str:
    return f"call_{os.urandom(4).hex()}"
