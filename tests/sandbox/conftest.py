"""Fixtures of the tests that run commands in a sandbox."""

from tests.agent.backends.backend_cases import build_runner, engine_socket

__all__ = ["build_runner", "engine_socket"]
