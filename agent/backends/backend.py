"""The interface of backends, which run commands."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

from agent.vocabulary.errors import SandboxError
from tooling.contract.action import Adjustment
from tooling.contract.command import CommandRunner
from tooling.contract.fast_dataclass import dataclass
from tooling.web.network_attempt import OnAttempt


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendOptions:
    """The folders and hosts that commands of a run may access, and callbacks for events.

    `hidden` are Windlass's own folders, invisible even inside a visible folder, except for `outputs`, the
    full outputs of commands, which commands can read. `image` is the container image. `on_sandbox_error` is called
    if the backend cannot be used, `on_attempt` for every host a command tries to reach.
    """

    workspace: Path
    environ: Mapping[str, str]
    extra_dirs: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    outputs: tuple[Path, ...] = ()
    allow_net: tuple[str, ...] = ()
    deny_net: tuple[str, ...] = ()
    sandbox_type: str = "auto"
    image: str = ""
    socket_dir: Path = Path("/dev/null/no-sockets")
    on_attempt: OnAttempt = lambda attempt: None
    warn: Callable[[str], None] = lambda message: None
    on_sandbox_error: Callable[[SandboxError], None] = lambda error: None

    def without_callbacks(self) -> "BackendOptions":
        """Return the same options without the callbacks of a run."""
        plain = BackendOptions(workspace=self.workspace, environ=self.environ)
        return replace(self, on_attempt=plain.on_attempt, warn=plain.warn, on_sandbox_error=plain.on_sandbox_error)


async def _ready() -> None:
    """Do nothing: it is always ready."""


async def _allow_host(host: str) -> None:
    """Do nothing: every host is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """Runs the commands of a run.

    `start` prepares it in the background, `ready` returns when commands can run safely or raises SandboxError,
    `allow_host` lets commands reach a host from now on, `end_run` revokes the permissions of one run,
    `adjustments` are its rules for verdicts, `warnings` are shown at the start of a run.
    """

    name: str
    runner: CommandRunner
    start: Callable[[], None] = lambda: None
    ready: Callable[[], Awaitable[None]] = _ready
    allow_host: Callable[[str], Awaitable[None]] = _allow_host
    end_run: Callable[[], None] = lambda: None
    close: Callable[[], Awaitable[None]] = _ready
    adjustments: tuple[Adjustment, ...] = ()
    warnings: tuple[str, ...] = ()
