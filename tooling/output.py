"""What a tool's text goes through before anyone reads it: decoded, stripped of escapes, redacted, trimmed."""

import re

from tooling.contract.fast_dataclass import dataclass

TOOL_TIMEOUT_MS = 120_000
GREP_TIMEOUT_MS = 30_000
WEB_FETCH_TIMEOUT_MS = 90_000
OUTPUT_TRIM_LEN = 3000
OUTPUT_HEAD_LEN = 1500
OUTPUT_TAIL_LEN = 1000
FETCH_MAX_CHARS = 80_000

# Kept as text: the expressions are compiled when the first output comes, not when the program starts.
_CONTROL_CHARS = r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
# The bytes of UTF-8 that are no control character by themselves.
_PLAIN_BYTES = bytes([9, 10, *range(32, 127), *range(128, 256)])
# Every branch consumes what it scans and never crosses a line, so no input can make this slow or swallow the rest.
_ESCAPE = (
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_OVERSTRUCK = r"[^\n\x08]\x08"


def decode_output(data: bytes) -> str:
    r"""Return bytes as text; what is no UTF-8 stays visible as \xNN."""
    return data.decode("utf-8", "backslashreplace")


def sanitize_output(text: str | None) -> str:
    """Return text without escape sequences and control characters; rewritten lines keep their last state."""
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
    """How long a text may be, and how much of its head and tail stays when it is longer."""

    limit: int = OUTPUT_TRIM_LEN
    head: int = OUTPUT_HEAD_LEN
    tail: int = OUTPUT_TAIL_LEN

    @classmethod
    def for_limit(cls, limit: int) -> "TrimLengths":
        """Return lengths in the usual proportion for another limit."""
        limit = max(limit, 0)
        return cls(
            limit=limit,
            head=limit * OUTPUT_HEAD_LEN // OUTPUT_TRIM_LEN,
            tail=limit * OUTPUT_TAIL_LEN // OUTPUT_TRIM_LEN,
        )


def trim_output(text: str, lengths: TrimLengths | None = None, *, where: str = "", total_bytes: int = 0) -> str:
    """Return head, notice and tail of a text that is too long; the notice gives the true number cut.

    `where` says how to get the whole; `total_bytes` is set when bytes were lost before they became text.
    """
    lengths = lengths or TrimLengths()
    if len(text) <= lengths.limit and not total_bytes:
        return text
    head = min(lengths.head, len(text))
    tail = min(lengths.tail, len(text) - head)
    cut = len(text) - head - tail
    lost = f"{cut} characters cut" if not total_bytes else f"cut, the whole output was {total_bytes} bytes"
    hint = f"; {where}" if where else ""
    return f"{text[:head]}\n[... {lost}{hint} ...]\n{text[len(text) - tail :]}"


def trim_fetch_output(text: str, *, reason: str = "limit exceeded", limit: int = FETCH_MAX_CHARS) -> str:
    """Return fetched text of at most `limit` characters, with a last line that gives limit, reason and true length."""
    if len(text) <= limit:
        return text
    suffix = f"\n[... cut at {limit} characters ({reason}); the whole text has {len(text)}]"
    return text[:limit] if len(suffix) >= limit else text[: limit - len(suffix)] + suffix


def _is_plain(text: str) -> bool:
    """Say whether a text holds nothing special: bytes are looked through ten times as fast as an expression does it."""
    data = text.encode("utf-8")
    if data.translate(None, _PLAIN_BYTES):
        return False
    # In UTF-8 the upper control characters begin with this byte, and so do a few signs that are in order.
    return b"\xc2" not in data or re.search(_CONTROL_CHARS, text) is None


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates (from file names that are no UTF-8): nothing after this may fail to encode."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text


def _apply_carriage_returns(line: str) -> str:
    return line.rstrip("\r").rpartition("\r")[2]
