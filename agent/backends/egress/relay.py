"""Access from the sandbox to the proxy: a relay in front of commands, and the variables that tools read."""

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

# Paths and ports inside the sandbox, which has its own loopback.
SANDBOX_SOCKET = "/.windlass/net/proxy.sock"
RELAY_PORT = 3128

_RELAY_SCRIPT = Path(__file__).with_name("relay_main.py")
# The sandbox has no network but its own loopback, so connecting to that directly bypasses nothing.
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
    """Return an argv that starts the relay and then becomes the command, with the same process id and exit code.

    It uses the interpreter of this program, without the virtual environment, which must be visible in the sandbox.
    """
    interpreter = python or relay_interpreter()
    return (interpreter, "-I", "-S", "-c", _relay_source(), str(port), socket_path, *command)


def relay_interpreter() -> str:
    """Return the resolved interpreter, which with `sys.base_prefix` must be visible in the sandbox."""
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
