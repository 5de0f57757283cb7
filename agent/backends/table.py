"""The backends by name; a new one is one module and one line here."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import cast

from agent.backends.backend import Backend, BackendOptions

# Each module has a function `build_backend`; only the module of the chosen backend is imported.
BACKENDS: Mapping[str, str] = {
    "sandbox": "agent.backends.sandbox.lazy_runner",
    "host": "agent.backends.host",
    "docker": "agent.backends.docker.lazy_runner",
}


def build_backend(name: str, options: BackendOptions) -> Backend:
    """Return the backend with this name for the commands of one run."""
    build = cast(Callable[[BackendOptions], Backend], import_module(BACKENDS[name]).build_backend)
    return build(options)
