"""Where a REPL lives: its settings as they are now, its files, and how a run is opened in it."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.load import LoadedSettings, load_settings
from agent.config.user_dirs import data_dir
from agent.vocabulary.errors import AgentError, ConfigError
from tooling.contract.fast_dataclass import dataclass

if TYPE_CHECKING:
    from agent.app import App
    from agent.orchestrator import Review
    from agent.sessions.resume.lookup import ResumableRun


@dataclass(slots=True, kw_only=True)
class ReplState:
    """What the person chose when they opened the prompt, and changed since."""

    environ: Mapping[str, str]
    cwd: Path
    flags: dict[str, object] = field(default_factory=dict)
    profile: str | None = None
    _status: str = ""

    @property
    def term(self) -> str:
        """Return the kind of terminal."""
        return self.environ.get("TERM", "")

    @property
    def status(self) -> str:
        """Return the line below the prompt; it is asked for with every frame, so it is kept until `look_again`."""
        if not self._status:
            self.refresh_status()
        return self._status

    def refresh_status(self) -> None:
        """Say in the status what the settings are now."""
        home = Path(self.environ.get("HOME", "/nonexistent"))
        folder = f"~/{self.cwd.relative_to(home)}" if self.cwd.is_relative_to(home) else str(self.cwd)
        try:
            settings = self.read_settings().settings
            self._status = f"{settings.model or 'no model'} · {settings.approval_mode} · {folder}"
        except ConfigError:
            # What is wrong with them is told by the next request; the prompt itself needs none.
            self._status = f"the settings cannot be read · {folder}"

    def read_settings(self, beneath: Mapping[str, object] | None = None) -> LoadedSettings:
        """Return the settings as they are now; what lies `beneath` holds unless the person chose otherwise here."""
        flags = {**(beneath or {}), **self.flags}
        return load_settings(environ=self.environ, flags=flags, assignments=(), profile=self.profile)

    def override(self, name: str, value: object) -> None:
        """Set something for the rest of the sitting; what the settings do not admit is refused."""
        before = dict(self.flags)
        self.flags[name] = value
        try:
            self.read_settings()
        except AgentError:
            self.flags = before
            raise

    def warm_up(self) -> None:
        """Load what the first request needs."""
        import agent.app  # noqa: F401 (loaded for later)

    def open_app(
        self, session_id: str | None, review: "Review | None" = None, resumes: "ResumableRun | None" = None
    ) -> "App":
        """Return a run in the session, or in a new one; one that goes on with another does so where that worked."""
        from agent.app import App
        from agent.assembly import RunOptions
        from agent.run_scope import SessionLocation

        place = SessionLocation(
            data_dir=data_dir(self.environ), session_id=session_id, cwd=resumes.cwd if resumes else self.cwd
        )
        options = RunOptions(
            location=place, is_user_present=True, review=review, resumes=resumes.run.run_id if resumes else None
        )
        loaded = self.read_settings(resumes.settings if resumes else None)
        return App(loaded=loaded, environ=self.environ, options=options)
