"""Decode, sanitize and trim the output of tools."""

import re

from tooling.contract.fast_dataclass import dataclass

TOOL_TIMEOUT_MS = 120_000
GREP_TIMEOUT_MS = 30_000
WEB_FETCH_TIMEOUT_MS = 90_000
OUTPUT_TRIM_LEN = 3000
OUTPUT_HEAD_LEN = 1500
OUTPUT_TAIL_LEN = 1000
FETCH_MAX_CHARS = 80_000

# About 4 % of the context window: 25 long outputs fit before old ones must be shortened. The lower limit shows most
# test runs and builds completely; above the upper one, models rarely use the middle part.
MIN_OUTPUT_CHARS = 16_000
MAX_OUTPUT_CHARS = 40_000
_WINDOW_SHARE = 0.04
_MAX_WINDOW_SHARE = 0.25
_CHARS_PER_TOKEN = 4

# Strings rather than compiled patterns: compiled on first use, not at startup.
_CONTROL_CHARS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
# UTF-8 bytes that are not control characters on their own.
_PLAIN_BYTES = bytes([9, 10, *range(32, 127), *range(128, 256)])
# Every branch consumes what it scans and stops at a line feed: matching is linear, and an unterminated sequence
# cannot swallow the following lines.
_ESCAPE = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_OVERSTRUCK = r"[^\n\x08]\x08"
# Characters that nobody sees and a model reads as text: tags, and more than one variation selector. The first branch is
# the flag of a region, which is made of tags.
_SMUGGLED = (
    "(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f)"
    "|[\ufe00-\ufe0f\U000e0000-\U000e007f\U000e0100-\U000e01ef]{2,}|[\U000e0000-\U000e007f]"
)


def decode_output(data: bytes) -> str:
    r"""Decode bytes as UTF-8; invalid bytes stay visible as \xNN."""
    return data.decode("utf-8", "backslashreplace")


def sanitize_output(text: str | None) -> str:
    """Remove escape sequences and control characters; lines overwritten by carriage returns keep their final state."""
    if not text:
        return ""
    text = _replace_surrogates(text)
    if _is_plain(text):
        return _without_smuggled(text)
    text = re.sub(_ESCAPE, "", text)
    if "\x08" in text:
        text = re.sub(_OVERSTRUCK, "", text)
    if "\r" in text:
        text = "\n".join(_apply_carriage_returns(line) for line in text.split("\n"))
    return _without_smuggled(re.sub(_CONTROL_CHARS, "", text))


def _without_smuggled(text: str) -> str:
    return text if text.isascii() else re.sub(_SMUGGLED, r"\1", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimLengths:
    """The maximum length of a text, and the lengths of its head and tail if it is trimmed."""

    limit: int = OUTPUT_TRIM_LEN
    head: int = OUTPUT_HEAD_LEN
    tail: int = OUTPUT_TAIL_LEN

    @classmethod
    def for_limit(cls, limit: int) -> "TrimLengths":
        """Split a limit: the tail is twice as long as the head, since errors and totals are at the end."""
        limit = max(limit, 0)
        return cls(limit=limit, head=limit * 3 // 10, tail=limit * 6 // 10)


def output_chars_for(context_tokens: int | None) -> int:
    """Return how many characters of an output a model with this context size gets."""
    if context_tokens is None:
        return MIN_OUTPUT_CHARS
    chars = context_tokens * _CHARS_PER_TOKEN
    wanted = min(max(int(chars * _WINDOW_SHARE), MIN_OUTPUT_CHARS), MAX_OUTPUT_CHARS)
    # A small local model must not lose its window to one command.
    return min(wanted, int(chars * _MAX_WINDOW_SHARE))


def trim_output(
    text: str,
    lengths: TrimLengths | None = None,
    *,
    hint: str = "",
    total_bytes: int = 0,
    total_lines: int | None = None,
) -> str:
    """Trim a long text to its head and tail, cut at line ends, with a notice in between that gives the true totals.

    `hint` says how to get the full text. `total_bytes` is set if bytes were dropped before decoding; `total_lines` is
    then the number of lines of the original, if known.
    """
    lengths = lengths or TrimLengths()
    if len(text) <= lengths.limit and not total_bytes:
        return text
    head = _head_end(text, min(lengths.head, len(text)))
    tail = _tail_start(text, max(len(text) - lengths.tail, head))
    if total_bytes:
        lines = "" if total_lines is None else f"{total_lines} lines, "
        notice = f"cut, the whole output was {lines}{total_bytes} bytes"
    else:
        size = len(text.encode("utf-8", "surrogatepass"))
        notice = f"{tail - head} characters cut, the whole output was {count_lines(text)} lines, {size} bytes"
    suffix = f"; {hint}" if hint else ""
    return f"{text[:head]}\n[... {notice}{suffix} ...]\n{text[tail:]}"


def count_lines(text: str) -> int:
    """Return the number of lines; the last one counts even without a line feed."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _head_end(text: str, end: int) -> int:
    """Return where to end the head: before a line feed if one is near, so that no line is shown in part."""
    line_end = text.rfind("\n", 0, end + 1)
    return line_end if line_end >= end // 2 > 0 else end


def _tail_start(text: str, start: int) -> int:
    """Return where to start the tail: after a line feed if one is near."""
    line_end = text.find("\n", max(start - 1, 0), start + (len(text) - start) // 2)
    return start if line_end < 0 else line_end + 1


def trim_fetch_output(text: str, *, reason: str = "limit exceeded", limit: int = FETCH_MAX_CHARS) -> str:
    """Truncate fetched text to `limit` characters; a last line gives the limit, the reason and the original length."""
    if len(text) <= limit:
        return text
    suffix = f"\n[... cut at {limit} characters ({reason}); the whole text has {len(text)}]"
    return text[:limit] if len(suffix) >= limit else text[: limit - len(suffix)] + suffix


def _is_plain(text: str) -> bool:
    """Whether there is nothing to sanitize; scanning bytes is ten times as fast as a regular expression."""
    data = text.encode("utf-8")
    if data.translate(None, _PLAIN_BYTES):
        return False
    # C1 control characters start with this byte in UTF-8, but so do harmless characters such as © and §.
    return b"\xc2" not in data or re.search(_CONTROL_CHARS, text) is None


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates (from file names that are not UTF-8), so that encoding cannot fail later."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text


def _apply_carriage_returns(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
