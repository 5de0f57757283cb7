"""Whether a terminal breaks lines anew when its window becomes narrower: known by name, and else not assumed."""

from collections.abc import Mapping

# To take a terminal that breaks lines for one that does not leaves stale lines; the other way round, finished
# lines would be erased. So only those that are known to do it are believed to.
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
    """Say whether lines that become too long for the window are broken, not cut."""
    # Inside of another terminal's program the variables of the outer one are still there.
    if environ.get("TERM", "").startswith("screen") and not environ.get("TMUX"):
        return False
    return (
        any(environ.get(name) for name in _BY_VARIABLE)
        or environ.get("TERM", "").startswith(_BY_TERM)
        or environ.get("TERM_PROGRAM", "") in _BY_PROGRAM
    )
