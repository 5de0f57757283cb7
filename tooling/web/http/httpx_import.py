"""httpx without its command line and HTTP/2: the one door through which it is imported."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

_COMMAND_LINE = "httpx._main"
_HTTP2 = "h2"


@contextmanager
def _without_extras() -> Iterator[None]:
    """Keep httpx from importing what a run does without: half of its import time.

    The command line brings click, rich and pygments, HTTP/2 three libraries of its own; both are taken when they
    happen to be installed. The stand-ins go away afterwards, so whoever wants the real modules still gets them.
    """
    if {"httpx", "httpcore", _COMMAND_LINE, _HTTP2} & sys.modules.keys():
        yield
        return
    stand_in = ModuleType(_COMMAND_LINE)
    vars(stand_in)["main"] = _main
    # None makes an import fail as if the library were not installed.
    stand_ins: dict[str, ModuleType | None] = {_COMMAND_LINE: stand_in, _HTTP2: None}
    sys.modules.update(stand_ins)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in stand_ins:
            del sys.modules[name]


def _main() -> None:
    raise RuntimeError("httpx was imported without its command line")


with _without_extras():
    import httpx

    # The engine of httpx, which it would import later, with its first client.
    import_module("httpcore")

__all__ = ["httpx"]
