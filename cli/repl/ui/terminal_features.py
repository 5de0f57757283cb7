"""Features of a terminal, detected from its environment variables: rewrapping of lines, a title."""

from collections.abc import Mapping

from cli.screen.colors import to_single_line

# Treating a terminal that rewraps as one that does not leaves stale lines on the screen. The opposite mistake
# erases finished lines, so only terminals known to rewrap are listed.
_BY_VARIABLE = (
    "TMUX",
    "VTE_VERSION",
    "KITTY_WINDOW_ID",
    "WEZTERM_PANE",
    "ALACRITTY_WINDOW_ID",
    "KONSOLE_VERSION",
    "GHOSTTY_RESOURCES_DIR",
    "WT_SESSION",
)
_BY_TERM = ("tmux", "xterm-kitty", "alacritty", "foot", "wezterm", "xterm-ghostty", "contour")
_BY_PROGRAM = ("iTerm.app", "Apple_Terminal", "WezTerm", "vscode", "ghostty", "WarpTerminal", "Tabby", "Hyper")


def reflows_lines(environ: Mapping[str, str]) -> bool:
    """Whether the terminal rewraps lines that no longer fit, rather than cutting them."""
    # Inside GNU screen, the variables of the outer terminal are still set.
    if environ.get("TERM", "").startswith("screen") and not environ.get("TMUX"):
        return False
    return (
        any(environ.get(name) for name in _BY_VARIABLE)
        or environ.get("TERM", "").startswith(_BY_TERM)
        or environ.get("TERM_PROGRAM", "") in _BY_PROGRAM
    )


_TITLE_TERMS = ("xterm", "tmux", "alacritty", "foot", "wezterm", "contour", "konsole", "vte", "gnome", "rxvt", "st-")
_SAVE, _RESTORE = "\x1b[22;2t", "\x1b[23;2t"
PROGRAM = "windlass"


class WindowTitle:
    """Sequences for the title of the terminal's window; empty if unsupported or disabled."""

    def __init__(self, *, environ: Mapping[str, str], folder: str, is_wanted: bool) -> None:
        term = environ.get("TERM", "")
        is_tmux = term.startswith("screen") and bool(environ.get("TMUX"))
        self._is_shown = is_wanted and (term.startswith(_TITLE_TERMS) or is_tmux)
        self._folder = folder
        self._shown = ""

    def begin(self) -> str:
        """Save the title of the shell and show ours."""
        self._shown = ""
        return self._sequence(_SAVE) + self.show("")

    def show(self, activity: str) -> str:
        """Show the current activity; empty if the title already shows it."""
        title = to_single_line(" · ".join(filter(None, (PROGRAM, self._folder, activity))))
        if title == self._shown:
            return ""
        self._shown = title
        return self._sequence(f"\x1b]2;{title}\x1b\\")

    def end(self) -> str:
        """Restore the title of the shell; a terminal that cannot do that gets an empty one."""
        return self._sequence(f"\x1b]2;\x1b\\{_RESTORE}")

    def _sequence(self, text: str) -> str:
        return text if self._is_shown else ""
