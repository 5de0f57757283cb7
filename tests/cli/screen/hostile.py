"""Text that attacks a terminal, and a search for what must never reach one."""

import re

# Clipboard, title, color, cleared screen, their C1 forms, device control, end of a paste, a synchronized update that
# never ends, overwriting, text direction, zero-width and tag characters.
HOSTILE = (
    "\x1b]52;c;ZXZpbA==\x07\x1b]0;title\x07\x1b]8;;http://evil\x07\x1b[8mhidden\x1b[2J\u009b2J\u009d52;c;x\u009c"
    "\x1bPq\x1b\\\x1b[201~\x1b[?2026h a\rb\bc\u202eevil\u2066\u200b\ufeff\u00ad\U000e0041 the end"
)
_OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\d*[ABCDHJK]|\x1b\[\?(?:1|7|12|25|2004|2026)[hl]|\r|\n|\t|\x1b\[0 q")
_FOREIGN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
    r"(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]{0,20})?"
)


def find_foreign(shown: bytes) -> list[str]:
    """Return the control sequences and invisible characters that are not ours."""
    return _FOREIGN.findall(_OURS.sub("", shown.decode("utf-8", "replace")))
