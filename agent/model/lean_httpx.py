"""httpx without its command line: the one door through which it is imported."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

_COMMAND_LINE = "httpx._main"


@contextmanager
def _without_command_line() -> Iterator[None]:
    """Keep httpx from importing click, rich and pygments for a command nobody calls: a third of its import time.

    The stand-in goes away afterwards, so the real module can still be imported by whoever wants it.
    """
    if "httpx" in sys.modules or _COMMAND_LINE in sys.modules:
        yield
        return
    stand_in = ModuleType(_COMMAND_LINE)
    vars(stand_in)["main"] = _main
    sys.modules[_COMMAND_LINE] = stand_in
    try:
        yield
    finally:
        del sys.modules[_COMMAND_LINE]


def _main() -> None:
    raise RuntimeError("httpx was imported without its command line")


with _without_command_line():
    import httpx

__all__ = ["httpx"]
