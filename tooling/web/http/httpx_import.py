"""Import httpx without its command line and HTTP/2; every other module imports it from here."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

_COMMAND_LINE = "httpx._main"
_HTTP2 = "h2"


@contextmanager
def _without_extras() -> Iterator[None]:
    """Keep httpx from importing modules that a run does not need, which is half of its import time.

    The command line imports click, rich and pygments, HTTP/2 three more libraries, whenever they are installed. The
    stubs are removed afterwards, so other code can still import the real modules.
    """
    if {"httpx", "httpcore", _COMMAND_LINE, _HTTP2} & sys.modules.keys():
        yield
        return
    stub = ModuleType(_COMMAND_LINE)
    vars(stub)["main"] = _main
    # None makes an import fail as if the library were not installed.
    stubs: dict[str, ModuleType | None] = {_COMMAND_LINE: stub, _HTTP2: None}
    sys.modules.update(stubs)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in stubs:
            del sys.modules[name]


def _main() -> None:
    raise RuntimeError("httpx was imported without its command line")


with _without_extras():
    import httpx

    # httpx would import this only with its first client, after the stubs are gone.
    import_module("httpcore")

__all__ = ["httpx"]
