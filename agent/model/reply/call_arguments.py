"""Parse the arguments of a tool call, and repair them if the meaning is unambiguous."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NoReturn

from tooling.contract.lazy_pattern import lazy_pattern

_FORMAT_HINT = 'Send the arguments as one JSON object, for example {"path": "notes.txt"}.'
_FENCE = lazy_pattern(r"```[\w-]*\s*(.*?)\s*```", re.DOTALL)
_STRING = lazy_pattern(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STRING_OR_TRAILING_COMMA = lazy_pattern(rf"({_STRING.pattern})|,(?=\s*[}}\]])", re.DOTALL)
_ESCAPE = lazy_pattern(r"\\(.)", re.DOTALL)
_PYTHON_ESCAPE = lazy_pattern(r"\\(?:x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8})")
_JSON_ONLY_ESCAPES = frozenset("bfnrtu")
_ESCAPES = _JSON_ONLY_ESCAPES | frozenset('"\\/')
_COMPLETE_END = lazy_pattern(r'(?:["}\]]|\b(?:true|false|null))$')
_BRACKET_OR_QUOTE = lazy_pattern(r'[{}\[\]"]')
# No tool has arguments nested nearly as deep, and everything that masks, stores and shows them is recursive.
_MAX_DEPTH = 64
_PAIRS = {"}": "{", "]": "["}


def parse_arguments(text: str) -> tuple[Mapping[str, object], str | None]:
    """Return the arguments and None, or an empty object and a problem description for the model."""
    bare = _strip_fence(text.strip())
    if not bare:
        return {}, None
    for value in _parse_candidates(bare):
        return _require_object(value)
    return {}, _describe_problem(bare)


def _parse_candidates(text: str) -> Iterator[object]:
    """Yield possible values of the text, the most literal one first."""
    parsers: tuple[Callable[[str], object], ...] = (
        _parse_json,
        _parse_repaired_json,
        _parse_python_literal,
        _parse_repaired_braces,
    )
    for parse in parsers:
        try:
            value = parse(text)
            _check_sendable(value)
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
        yield value


def _check_sendable(value: object) -> None:
    """Raise ValueError for values that cannot be sent or stored: lone surrogates, infinite numbers, deep nesting."""
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [child for item in level for child in _children(item)]
        if not level:
            return
    raise ValueError("nested too deeply")


def _children(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _require_object(value: object) -> tuple[Mapping[str, object], str | None]:
    if isinstance(value, str):
        value = _parse_nested(value)
    if isinstance(value, dict):
        return value, None
    return {}, f"The arguments are {_type_name(value)}, not a JSON object. {_FORMAT_HINT}"


def _parse_nested(text: str) -> object:
    """Parse a JSON string that contains JSON; return any other string unchanged."""
    return next(_parse_candidates(text.strip()), text)


def _strip_fence(text: str) -> str:
    fenced = _FENCE.fullmatch(text)
    return fenced.group(1) if fenced else text


def _parse_json(text: str) -> object:
    value: object = json.loads(text, strict=False, parse_constant=_reject_constant)
    return value


def _reject_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _parse_repaired_json(text: str) -> object:
    return _parse_json(_STRING_OR_TRAILING_COMMA.sub(lambda match: match.group(1) or "", _repair_backslashes(text)))


def _repair_backslashes(text: str) -> str:
    """Double backslashes that escape nothing; if others do escape, the text is ambiguous and left unchanged."""
    escaped = set(_ESCAPE.findall(text))
    if escaped <= _ESCAPES or escaped & _JSON_ONLY_ESCAPES or _PYTHON_ESCAPE.search(text):
        return text
    return _ESCAPE.sub(lambda match: ("" if match.group(1) in _ESCAPES else "\\") + match.group(0), text)


def _parse_python_literal(text: str) -> object:
    import ast
    import warnings

    with warnings.catch_warnings():
        # Python only warns about an unknown escape; here it makes the text ambiguous.
        warnings.simplefilter("error")
        tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        for name, child in ast.iter_fields(node):
            if isinstance(child, list):
                setattr(node, name, [_replace_json_constant(item) for item in child])
    return _to_json(ast.literal_eval(tree))


def _replace_json_constant(node: object) -> object:
    """Replace JSON's true, false and null, which Python parses as names."""
    import ast

    words = {"true": True, "false": False, "null": None}
    if isinstance(node, ast.Name) and node.id in words:
        return ast.Constant(words[node.id])
    return node


def _to_json(value: object) -> object:
    """Convert a literal to JSON data, or raise TypeError for what JSON cannot represent."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("keys must be text")
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{type(value).__name__} is not JSON")


def _parse_repaired_braces(text: str) -> object:
    """Add the final brace if only that is missing, or drop extra closing braces."""
    repaired = _STRING_OR_TRAILING_COMMA.sub(lambda match: match.group(1) or "", text)
    # A number at the end may be truncated, so it does not count as complete.
    if _unclosed_brackets(repaired) == "{" and _COMPLETE_END.search(repaired):
        return _parse_json(repaired + "}")
    value, end = json.JSONDecoder(strict=False).raw_decode(repaired)
    if repaired[end:].replace("}", "").strip():
        raise ValueError("text after the object")
    constant: object = value
    return constant


def _unclosed_brackets(text: str) -> str:
    """Return the brackets and the quote that are still open at the end, outermost first."""
    rest = _STRING.sub("", text)
    parts: list[str] = []
    for match in _BRACKET_OR_QUOTE.finditer(rest):
        mark = match.group()
        if mark == '"':
            return "".join(parts) + mark
        if mark in "{[":
            parts.append(mark)
        elif parts and parts[-1] == _PAIRS[mark]:
            parts.pop()
    return "".join(parts)


def _describe_problem(text: str) -> str:
    still_open = _unclosed_brackets(text)
    if text.startswith("{") and still_open.endswith('"'):
        return f"The arguments end inside a string ({_describe_end(text)}): {_TRUNCATED}"
    if text.startswith("{") and still_open:
        return f"The arguments end before {len(still_open)} bracket(s) are closed ({_describe_end(text)}): {_TRUNCATED}"
    try:
        _check_sendable(_parse_json(text))
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20]
        where = f"line {error.lineno}, column {error.colno}, near {near!r}"
        return f"The arguments are not valid JSON: {error.msg} at {where}. {_FORMAT_HINT}"
    except UnicodeEncodeError:
        return f"The arguments contain a lone surrogate (\\ud800 to \\udfff), which is not text. {_FORMAT_HINT}"
    except (ValueError, RecursionError) as error:
        return f"The arguments are not usable JSON: {str(error)[:100]}. {_FORMAT_HINT}"
    return f"The arguments could not be read. {_FORMAT_HINT}"


_TRUNCATED = f"they were probably cut off. {_FORMAT_HINT} Split long content over several calls."


def _describe_end(text: str) -> str:
    return f"after {len(text)} characters, …{text[-20:]!r}"


def _type_name(value: object) -> str:
    names: dict[type, str] = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "null")
