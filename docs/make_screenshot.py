"""Makes docs/demo.svg from a real run of `agent demo` in a terminal: `.venv/bin/python docs/make_screenshot.py`."""

import re
import sys
import tempfile
from io import StringIO
from pathlib import Path

import pexpect
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

COLUMNS, ROWS = 118, 60
TARGET = Path(__file__).with_name("demo.svg")
COMMAND = "agent demo"
_TEMPORARY = re.compile(r"(/tmp/windlass-demo)-\w+")
# The picture must not make its reader fetch fonts from somebody else's server.
_WEB_FONTS = re.compile(r"@font-face \{\{.*?\}\}\n\s*", re.DOTALL)


def recorded() -> str:
    """Return what a terminal is sent by `agent demo`, colours and all."""
    program = str(Path(sys.executable).with_name("agent"))
    with tempfile.TemporaryDirectory() as home:
        environ = {"HOME": home, "AGENT_SANDBOX": home, "PATH": "/usr/bin:/bin", "TERM": "xterm-256color"}
        terminal = pexpect.spawn(program, ["demo"], env=environ, dimensions=(ROWS, COLUMNS), encoding="utf-8")
        shown = terminal.read()
        terminal.close()
    if terminal.exitstatus != 0:
        sys.exit(f"agent demo failed:\n{shown}")
    return _TEMPORARY.sub(r"\1", shown.replace("\r\n", "\n"))


def picture(shown: str) -> str:
    """Return the terminal's content as an SVG."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), color_system="truecolor", force_terminal=True)
    console.print(Text(f"$ {COMMAND}", style="bold"))
    console.print(Text.from_ansi(shown))
    svg = console.export_svg(
        title=COMMAND, code_format=_WEB_FONTS.sub("", CONSOLE_SVG_FORMAT), unique_id="windlass-demo"
    )
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


if __name__ == "__main__":
    TARGET.write_text(picture(recorded()))
