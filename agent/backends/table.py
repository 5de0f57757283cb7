"""The backends by name; a new one is a file of its own and a line here."""

from collections.abc import Callable, Mapping

from agent.backends.backend import Backend, BackendOptions
from agent.backends.host import host_backend
from agent.backends.sandbox.lazy_runner import sandbox_backend

BACKENDS: Mapping[str, Callable[[BackendOptions], Backend]] = {
    "sandbox": sandbox_backend,
    "host": host_backend,
}
