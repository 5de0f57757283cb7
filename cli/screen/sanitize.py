"""Text of strangers on a terminal: nothing in it moves the cursor, and nothing is in it that nobody sees."""

import io
import json
import re

from tooling.output import sanitize_output

# They take no room and turn words round, hide a difference or carry a text of their own. Joiners are not among them:
# whole languages are written with them.
_INVISIBLE = "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"


def sanitize(text: str) -> str:
    """Return text without escape sequences, control characters and those that nobody sees."""
    return strip_invisible(sanitize_output(text))


def strip_invisible(text: str) -> str:
    """Return text without the characters that nobody sees; escape sequences stay."""
    return text if text.isascii() else re.sub(f"[{_INVISIBLE}]", "", text)


def to_safe_json(data: object, *, indent: int | None = None) -> str:
    """Return JSON for people and programs alike: what a terminal would obey or hide is escaped in it."""
    text = json.dumps(data, ensure_ascii=False, indent=indent)
    return re.sub(f"[\x7f-\x9f{_INVISIBLE}]", lambda mark: json.dumps(mark[0])[1:-1], text)


class PlainStream(io.TextIOWrapper):
    """A terminal for words alone, whoever writes them; our own sequences go to its buffer."""

    def write(self, text: str) -> int:
        """Write what can be read of a text."""
        super().write(text if text.isascii() and text.isprintable() else sanitize(text))
        return len(text)
