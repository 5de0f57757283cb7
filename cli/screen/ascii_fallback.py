"""Signs for terminals that know no Unicode: every mark of ours has a twin of one cell that any of them can show."""

from collections.abc import Mapping

_REPLACEMENTS = {
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
_TABLE = str.maketrans(_REPLACEMENTS)
_PYTHON_DEFAULTS = ("C.UTF-8", "C.utf8", "UTF-8")


def to_ascii(text: str) -> str:
    """Return the text with our marks as plain characters; what others wrote stays as it is."""
    return text if text.isascii() else text.translate(_TABLE)


def supports_unicode(environ: Mapping[str, str]) -> bool:
    """Say whether the terminal shows Unicode, by the language settings; where nothing is set, it does today."""
    # Python itself puts the second of them in place of a "C" that it does not like.
    names = ("LC_ALL", "LANG") if environ.get("LC_CTYPE") in _PYTHON_DEFAULTS else ("LC_ALL", "LC_CTYPE", "LANG")
    chosen = next((value for name in names if (value := environ.get(name))), "utf8")
    return "utf8" in chosen.lower().replace("-", "")
