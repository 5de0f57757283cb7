"""Signs for terminals that know no Unicode: every mark of ours has a twin of one cell that any of them can show."""

from collections.abc import Mapping

_TWINS = {
    "✓": "+",
    "✗": "x",
    "●": "*",
    "○": "o",
    "▶": ">",
    "…": "~",
    "·": "-",
    "•": "*",
    "»": ">",
    "→": ">",
    "←": "<",
    "–": "-",
    "—": "-",
    "█": "#",
    "░": ".",
    "▌": "|",
    "⏎": "\\",
    "�": "?",
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”", '"'),
    **dict(zip("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\|/-\\|/", strict=True)),
    # Boxes and rails, as plans, tables and rules are drawn with.
    **{chr(code): "+" for code in range(0x2500, 0x2580)},
    **dict.fromkeys("─━┄┅┈┉╌╍═╴╶╸╺", "-"),
    **dict.fromkeys("│┃┆┇┊┋╎╏║╵╷╹╻", "|"),
}
_TABLE = str.maketrans(_TWINS)


def without_unicode(text: str) -> str:
    """Return the text with our marks as plain characters; what others wrote stays as it is."""
    return text if text.isascii() else text.translate(_TABLE)


def knows_unicode(environ: Mapping[str, str]) -> bool:
    """Say whether the person's language settings promise a terminal that shows Unicode."""
    names = ("LC_ALL", "LC_CTYPE", "LANG")
    chosen = next((value for name in names if (value := environ.get(name))), "")
    return "utf8" in chosen.lower().replace("-", "")
