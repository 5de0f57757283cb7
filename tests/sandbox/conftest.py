"""Fixtures of the tests that run commands in a sandbox."""

from tests.agent.backends.backend_cases import build_runner

__all__ = ["build_runner"]
