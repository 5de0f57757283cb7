"""The errors shown to users: a message, a hint and an exit code.

AgentError
├── UsageError       2   invalid flags or arguments
├── InputError      42   bad prompt, attachment or plan file
├── SandboxError    44   the requested sandbox is not available
├── ConfigError     52   invalid settings
├── LimitError      53   more steps than a limit allows
├── UntrustedFolder 55   the hooks of a folder are not trusted
├── ModelSetupError 41   no model or no API key
└── SessionBusy     75   another process is using the session
"""

from agent.vocabulary import exit_codes
from agent.vocabulary.status import Subtype


class AgentError(Exception):
    """Shown to the user as `error: message` and `hint: …`, never as a traceback."""

    exit_code = exit_codes.FAILED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def subtype(self) -> Subtype:
        """Return the subtype of a run that ends with this error."""
        return exit_codes.SUBTYPES[self.exit_code]


class UsageError(AgentError):
    """The command line is invalid."""

    exit_code = exit_codes.USAGE


class InputError(AgentError):
    """A prompt, attachment or plan file cannot be used."""

    exit_code = exit_codes.BAD_INPUT


class SandboxError(AgentError):
    """The requested sandbox is not available."""

    exit_code = exit_codes.NO_SANDBOX


class ConfigError(AgentError):
    """A setting is unknown or has an invalid value."""

    exit_code = exit_codes.BAD_CONFIG


class LimitError(AgentError):
    """A plan has more steps than allowed."""

    exit_code = exit_codes.LIMIT


class UntrustedFolder(AgentError):
    """A folder has hooks that the user has not trusted in their current state."""

    exit_code = exit_codes.UNTRUSTED


class ModelSetupError(AgentError):
    """No model is configured, or its API key is missing."""

    exit_code = exit_codes.NO_KEY


class SessionBusy(AgentError):
    """Another process is using the session; retrying later may succeed."""

    exit_code = exit_codes.RETRY_LATER

    @property
    def subtype(self) -> Subtype:
        """Return the subtype of a run that ends with this error."""
        return "error_busy"
