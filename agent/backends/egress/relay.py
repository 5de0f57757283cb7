"""How a command inside the box gets to the proxy outside: a relay in front of it and the variables that tools read."""

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

# Inside the box, where the proxy's socket is mounted and where the relay listens; the box has a loopback of its own.
SANDBOX_SOCKET = "/run/windlass/proxy.sock"
RELAY_PORT = 3128

_RELAY_SCRIPT = Path(__file__).with_name("relay_main.py")
# The box has no other network than its own loopback, so going there directly evades nothing.
_OWN_LOOPBACK = "localhost,127.0.0.1,::1"
_PROXY_NAMES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
    *("npm_config_proxy", "npm_config_https_proxy", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"),
)
_NO_PROXY_NAMES = ("NO_PROXY", "no_proxy", "npm_config_noproxy")


def relay_argv(
    command: Sequence[str],
    *,
    socket_path: str = SANDBOX_SOCKET,
    port: int = RELAY_PORT,
    python: str | None = None,
) -> tuple[str, ...]:
    """Return the argv that brings the relay up and then is the command: same process, same exit code.

    The interpreter is the one that runs this program, without its virtual environment; the box has to show it.
    """
    interpreter = python or relay_interpreter()
    return (interpreter, "-I", "-S", "-c", _relay_source(), str(port), socket_path, *command)


def relay_interpreter() -> str:
    """Return the real interpreter behind this program, which with `sys.base_prefix` must be visible in the box."""
    return str(Path(sys.executable).resolve())


def proxy_environment(port: int = RELAY_PORT) -> dict[str, str]:
    """Return the variables that make curl, git, pip, npm, yarn, node, cargo and Go use the relay."""
    address = f"http://127.0.0.1:{port}"
    return {
        **dict.fromkeys(_PROXY_NAMES, address),
        **dict.fromkeys(_NO_PROXY_NAMES, _OWN_LOOPBACK),
        "NODE_USE_ENV_PROXY": "1",
    }


@cache
def _relay_source() -> str:
    return _RELAY_SCRIPT.read_text(encoding="utf-8")
