"""Which terminals rewrap lines when their window gets narrower."""

from collections.abc import Mapping

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
