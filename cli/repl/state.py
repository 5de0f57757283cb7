"""State of the REPL: current settings and overrides, the status line, and the opening of runs."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.load import LoadedSettings, load_settings
from agent.config.user_dirs import data_dir, own_folders, user_homes
from agent.protocol.envelope import Envelope
from agent.protocol.events import MessageAdded, RunCompleted, RunStarted
from agent.vocabulary.errors import AgentError, ConfigError
from agent.vocabulary.plan import LEAD
from agent.vocabulary.usage import Usage
from cli.screen.format import format_cache_use, format_cost, format_count
from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    from agent.app import App
    from agent.backends.shared import SharedBackend
    from agent.orchestrator import Review
    from agent.sessions.checkpoints.keeper import KeptCheckpoint
    from agent.sessions.resume.lookup import ResumableRun
    from agent.workspace.worktrees import Worktree

NO_MODEL = "no model"
PLAN_MODE = "plan"
_CYCLE = ("ask", "auto-edit", PLAN_MODE)
UNREADABLE_SETTINGS = "cannot read settings"


@dataclass(slots=True, kw_only=True)
class ReplState:
    """Environment, working directory and overrides; `flags` come from the command line and from slash commands."""

    environ: Mapping[str, str]
    cwd: Path
    flags: dict[str, object] = field(default_factory=dict)
    profile: str | None = None
    # The git worktree of the prompt, if any.
    worktree: "Worktree | None" = None
    # The approval mode of the last request that was not in plan mode, or the one before the first switch.
    used_mode: str = ""
    # Names the commit of the worktree.
    last_request: str = ""
    # What the current session has used so far.
    usage: Usage = field(default_factory=Usage)
    _status: str = ""
    _context_window: int | None = None
    _context_share: float | None = None
    _shared_backend: "SharedBackend | None" = None
    _kept_checkpoint: "KeptCheckpoint | None" = None

    @property
    def term(self) -> str:
        return self.environ.get("TERM", "")

    @property
    def status(self) -> str:
        """The line below the prompt; cached until `refresh_status`, because every frame reads it."""
        if not self._status:
            self.refresh_status()
        return self._status

    def refresh_status(self) -> None:
        """Update the status line from the current settings."""
        home = Path(self.environ.get("HOME", "/nonexistent"))
        shown = Path(self.worktree.root) if self.worktree else self.cwd
        folder = f"~/{shown.relative_to(home)}" if shown.is_relative_to(home) else str(shown)
        folder += f" · worktree {self.worktree.name}" if self.worktree else ""
        try:
            settings = self.read_settings().settings
            meter = "" if self._context_share is None else f" · ctx {self._context_share:.0%}"
            self._status = f"{settings.model or NO_MODEL} · {settings.approval_mode}{meter} · {folder}"
        except ConfigError:
            # The next request reports the details; the prompt itself works without settings.
            self._status = f"{UNREADABLE_SETTINGS} · {folder}"

    def on_event(self, envelope: Envelope) -> None:
        """Update the usage of the session and the fill level of the context from a reply of the lead."""
        match envelope.event:
            case MessageAdded(role="user", content=text) if envelope.step_id is None:
                self.last_request = text
            case RunStarted(context_window=window):
                self._context_window = window
            case MessageAdded(spent=Usage() as spent) if envelope.step_id == LEAD and spent.input_tokens:
                used = spent.input_tokens + spent.output_tokens
                self.show_context_share(used / self._context_window if self._context_window else None)
            case RunCompleted(usage=usage):
                self.usage += usage
            case _:
                pass

    def add_usage(self, usage: Usage) -> None:
        """Add usage outside of the runs of this session."""
        self.usage += usage

    def cost_text(self) -> str:
        """Return tokens, requests and cost of the session."""
        cost = "unknown cost" if self.usage.cost_usd is None else format_cost(self.usage.cost_usd)
        requests = "1 request" if self.usage.requests == 1 else f"{self.usage.requests} requests"
        cache = f" ({used})" if (used := format_cache_use(self.usage)) else ""
        return f"{format_count(self.usage.total_tokens)} tokens{cache} in {requests}, {cost}"

    def show_context_share(self, share: float | None) -> None:
        """Show the used share of the model's window in the status line; None if it is unknown."""
        self._context_share = share
        self.refresh_status()

    def read_settings(
        self, defaults: Mapping[str, object] | None = None, overrides: Mapping[str, object] | None = None
    ) -> LoadedSettings:
        """Load the settings; values set in this REPL have precedence over `defaults`, and `overrides` over both."""
        flags = {**(defaults or {}), **self.flags, **(overrides or {})}
        return load_settings(environ=self.environ, flags=flags, assignments=(), profile=self.profile)

    def override(self, name: str, value: object) -> None:
        """Override a setting until the REPL exits; an invalid value raises and changes nothing."""
        before = dict(self.flags)
        self.flags[name] = value
        try:
            self.read_settings()
        except AgentError:
            self.flags = before
            raise

    @property
    def approval_mode(self) -> str:
        """The current approval mode; empty if the settings cannot be read."""
        try:
            return self.read_settings().settings.approval_mode
        except ConfigError:
            return ""

    def set_mode(self, mode: str) -> None:
        """Switch to an approval mode."""
        before = self.approval_mode
        self.override("approval_mode", mode)
        if before != PLAN_MODE:
            self.used_mode = self.used_mode or before
        self.refresh_status()

    def cycle_mode(self) -> None:
        """Switch to the next of the approval modes that a key selects."""
        mode = self.approval_mode
        self.set_mode(_CYCLE[(_CYCLE.index(mode) + 1) % len(_CYCLE)] if mode in _CYCLE else _CYCLE[0])

    def leave_plan_mode(self) -> None:
        """Return to the mode before plan mode."""
        self.set_mode(self.used_mode or _CYCLE[0])

    def warm_up(self) -> None:
        """Import the modules the first request needs."""
        import agent.app  # noqa: F401 (loaded for later)

    def open_app(
        self,
        session_id: str | None,
        review: "Review | None" = None,
        resumes: "ResumableRun | None" = None,
        *,
        approval_mode: str = "",
    ) -> "App":
        """Open a run in the session, or in a new one; a resumed run works in its original folder."""
        from agent.app import App
        from agent.backends.shared import SharedBackend
        from agent.run_context import RunOptions
        from agent.run_scope import SessionLocation
        from agent.sessions.checkpoints.keeper import KeptCheckpoint

        self._kept_checkpoint = self._kept_checkpoint or KeptCheckpoint()
        location = SessionLocation(
            data_dir=data_dir(self.environ),
            session_id=session_id,
            cwd=resumes.cwd if resumes else self.cwd,
            own_dirs=own_folders(self.environ),
            homes=user_homes(self.environ),
            kept_checkpoint=self._kept_checkpoint,
            worktree=self.worktree if resumes is None or resumes.cwd == self.cwd else None,
        )
        if self._shared_backend is None:
            self._shared_backend = SharedBackend()
        options = RunOptions(
            location=location,
            is_user_present=True,
            review=review,
            resumes=resumes.run.run_id if resumes else None,
            shared_backend=self._shared_backend,
        )
        mode = {"approval_mode": approval_mode} if approval_mode else {}
        loaded = self.read_settings(resumes.settings if resumes else None, mode)
        return App(loaded=loaded, environ=self.environ, options=options)

    async def close(self) -> None:
        """Stop background work of the requests of this REPL."""
        if self._shared_backend is not None:
            await self._shared_backend.close()
        if self._kept_checkpoint is not None:
            self._kept_checkpoint.close()
