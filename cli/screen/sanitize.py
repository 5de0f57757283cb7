"""Sanitizing untrusted text for a terminal: no control sequences, no invisible characters."""

import io
import json
import re

from tooling.output import sanitize_output

# Zero-width characters that reverse text, hide differences or carry hidden text. Joiners are not included, because
# some languages need them.
_INVISIBLE = "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"


def sanitize(text: str) -> str:
    """Remove escape sequences, control characters and invisible characters."""
    return strip_invisible(sanitize_output(text))


def strip_invisible(text: str) -> str:
    """Remove invisible characters, but not escape sequences."""
    return text if text.isascii() else re.sub(f"[{_INVISIBLE}]", "", text)


def to_safe_json(data: object, *, indent: int | None = None) -> str:
    """Encode JSON, escaping characters that a terminal would obey or hide."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    return re.sub(f"[\x7f-\x9f{_INVISIBLE}]", lambda match: json.dumps(match[0])[1:-1], text)


class PlainStream(io.TextIOWrapper):
    """A terminal stream that sanitizes everything written to it; our own sequences go to its buffer."""

    def write(self, text: str) -> int:
        """Write sanitized text."""
        super().write(text if text.isascii() and text.isprintable() else sanitize(text))
        return len(text)
