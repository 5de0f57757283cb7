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


def decode_output(data: bytes) -> str:
    r"""Decode bytes as UTF-8; invalid bytes stay visible as \xNN."""
    return data.decode("utf-8", "backslashreplace")


def sanitize_output(text: str | None) -> str:
    """Remove escape sequences and control characters; lines overwritten by carriage returns keep their final state."""
    if not text:
        return ""
    text = _replace_surrogates(text)
    if _is_plain(text):
        return text
    text = re.sub(_ESCAPE, "", text)
    if "\x08" in text:
        text = re.sub(_OVERSTRUCK, "", text)
    if "\r" in text:
        text = "\n".join(_apply_carriage_returns(line) for line in text.split("\n"))
    return re.sub(_CONTROL_CHARS, "", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimLengths:
    """The maximum length of a text, and how much of its head and tail is kept when it is longer."""

    limit: int = OUTPUT_TRIM_LEN
    head: int = OUTPUT_HEAD_LEN
    tail: int = OUTPUT_TAIL_LEN

    @classmethod
    def for_limit(cls, limit: int) -> "TrimLengths":
        """Scale the default head and tail to another limit."""
        limit = max(limit, 0)
        return cls(
            limit=limit,
            head=limit * OUTPUT_HEAD_LEN // OUTPUT_TRIM_LEN,
            tail=limit * OUTPUT_TAIL_LEN // OUTPUT_TRIM_LEN,
        )


def trim_output(text: str, lengths: TrimLengths | None = None, *, hint: str = "", total_bytes: int = 0) -> str:
    """Trim a long text to its head and tail, with a notice in between that gives the exact number of characters cut.

    `hint` says how to get the full text; `total_bytes` is set if bytes were dropped before decoding.
    """
    lengths = lengths or TrimLengths()
    if len(text) <= lengths.limit and not total_bytes:
        return text
    head = min(lengths.head, len(text))
    tail = min(lengths.tail, len(text) - head)
    cut = len(text) - head - tail
    notice = f"{cut} characters cut" if not total_bytes else f"cut, the whole output was {total_bytes} bytes"
    suffix = f"; {hint}" if hint else ""
    return f"{text[:head]}\n[... {notice}{suffix} ...]\n{text[len(text) - tail :]}"


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
