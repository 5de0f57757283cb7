"""Errors a person reads: what happened, what to do, and the exit code.

AgentError
├── UsageError       2   flags or arguments that make no sense
├── InputError      42   bad prompt, attachment or plan file
├── SandboxError    44   the asked-for sandbox is not available
├── ConfigError     52   settings that are wrong
├── LimitError      53   more steps than a limit allows
├── ModelSetupError 41   no model or no key
└── SessionBusy     75   another process runs in the session
"""

from agent.vocabulary import exit_codes
from agent.vocabulary.status import Subtype


class AgentError(Exception):
    """Shown at the edge as `error: message` and `hint: …`, never as a traceback."""

    exit_code = exit_codes.FAILED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def subtype(self) -> Subtype:
        """Return how a run that ends with it is called."""
        return exit_codes.SUBTYPES[self.exit_code]


class UsageError(AgentError):
    """The command line makes no sense."""

    exit_code = exit_codes.USAGE


class InputError(AgentError):
    """A prompt, attachment or plan file cannot be used."""

    exit_code = exit_codes.BAD_INPUT


class SandboxError(AgentError):
    """The asked-for sandbox is not available."""

    exit_code = exit_codes.NO_SANDBOX


class ConfigError(AgentError):
    """A setting is unknown, of the wrong type, or impossible."""

    exit_code = exit_codes.BAD_CONFIG


class LimitError(AgentError):
    """A plan has more steps than allowed."""

    exit_code = exit_codes.LIMIT


class ModelSetupError(AgentError):
    """No model is configured, or its key is missing."""

    exit_code = exit_codes.NO_KEY


class SessionBusy(AgentError):
    """Another process runs something in the session; a moment later it may be free."""

    exit_code = exit_codes.RETRY_LATER

    @property
    def subtype(self) -> Subtype:
        """Return how a run that ends with it is called."""
        return "error_busy"
