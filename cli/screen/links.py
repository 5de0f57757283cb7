"""OSC 8 links: URLs and existing files in finished lines are clickable if the terminal supports it."""

import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

from rich.cells import cell_len

from tooling.contract.lazy_pattern import lazy_pattern

_LINKABLE = lazy_pattern(r"""https?://[^\s\x00-\x20\x7f-\x9f<>"'`]+|(?:~?/|\.{1,2}/)?[\w.@+-]+(?:/[\w.@+-]+)*""")
_SEQUENCE = lazy_pattern(r"\x1b\[[0-9;?]*[A-Za-z]")
_TRAILING = ".,;:!?)]}*_"
_MAX_LOOKUPS = 200
_BY_VARIABLE = ("KITTY_WINDOW_ID", "WEZTERM_PANE", "GHOSTTY_RESOURCES_DIR", "WT_SESSION", "KONSOLE_VERSION")
_BY_TERM = ("xterm-kitty", "alacritty", "foot", "wezterm", "xterm-ghostty", "contour")
_BY_PROGRAM = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Tabby")
# The first version of the library behind GNOME Terminal and others without a crash on links.
_MIN_VTE = 5002


def supports_links(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is known to show OSC 8 links, or to ignore them; tmux passes them on if it can."""
    term, vte = environ.get("TERM", ""), environ.get("VTE_VERSION", "")
    if term in ("", "dumb", "linux") or (term.startswith("screen") and not environ.get("TMUX")):
        return False
    return (
        any(environ.get(name) for name in _BY_VARIABLE)
        or term.startswith(_BY_TERM)
        or environ.get("TERM_PROGRAM", "") in _BY_PROGRAM
        or (vte.isdecimal() and int(vte) >= _MIN_VTE)
    )


def link_writer(environ: Mapping[str, str], folder: Path, columns: Callable[[], int]) -> Callable[[str], str]:
    """Return the function that adds links to finished lines; it changes nothing if the terminal cannot show them."""
    if not supports_links(environ):
        return lambda text: text
    host = socket.gethostname()

    def add_links(text: str) -> str:
        lookups = 0

        def link(found: re.Match[str]) -> str:
            nonlocal lookups
            shown = found[0].rstrip(_TRAILING)
            if shown.startswith("http"):
                target = "" if _may_continue(found, columns()) else shown
            else:
                lookups += 1
                target = _file_url(shown, folder, host) if lookups <= _MAX_LOOKUPS else ""
            return f"\x1b]8;;{target}\x1b\\{shown}\x1b]8;;\x1b\\{found[0][len(shown) :]}" if target else found[0]

        return _LINKABLE.sub(link, text)

    return add_links


def _may_continue(found: re.Match[str], columns: int) -> bool:
    """Whether a URL ends where its line is full, so that the next line may contain the rest of it."""
    line = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.end()]
    return cell_len(_SEQUENCE.sub("", line)) >= columns - 1


def _file_url(name: str, folder: Path, host: str) -> str:
    if "." not in name and "/" not in name:
        return ""
    try:
        path = folder / Path(name).expanduser()
        return f"file://{host}{quote(str(path.resolve()))}" if name.strip("./~") and path.exists() else ""
    except (OSError, RuntimeError, ValueError):
        return ""
