"""ASCII replacements, one cell each, for the symbols we draw on terminals without Unicode."""

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
    # Box-drawing characters of plans, tables and rules.
    **{chr(code): "+" for code in range(0x2500, 0x2580)},
    **dict.fromkeys("─━┄┅┈┉╌╍═╴╶╸╺", "-"),
    **dict.fromkeys("│┃┆┇┊┋╎╏║╵╷╹╻", "|"),
}
_TABLE = str.maketrans(_REPLACEMENTS)
_PYTHON_DEFAULTS = ("C.UTF-8", "C.utf8", "UTF-8")


def to_ascii(text: str) -> str:
    """Replace our symbols with ASCII; all other characters stay."""
    return text if text.isascii() else text.translate(_TABLE)


def supports_unicode(environ: Mapping[str, str]) -> bool:
    """Whether the locale variables indicate Unicode support; if none is set, it is assumed."""
    # Python coerces the C locale by setting LC_CTYPE itself (PEP 538), so these values mean nothing.
    names = ("LC_ALL", "LANG") if environ.get("LC_CTYPE") in _PYTHON_DEFAULTS else ("LC_ALL", "LC_CTYPE", "LANG")
    chosen = next((value for name in names if (value := environ.get(name))), "utf8")
    return "utf8" in chosen.lower().replace("-", "")
