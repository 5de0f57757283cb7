"""Where a REPL lives: its settings as they are now, its files, and how a run is opened in it."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from agent.config.load import Loaded, load_settings
from agent.config.places import data_dir

if TYPE_CHECKING:
    from agent.app import App
    from agent.orchestrator import Review


@dataclass(slots=True, kw_only=True)
class ReplPlace:
    """What the person chose when they opened the prompt, and changed since."""

    environ: Mapping[str, str]
    cwd: Path
    flags: dict[str, object] = field(default_factory=dict)
    profile: str | None = None
    is_vi: bool = False

    @property
    def term(self) -> str:
        """Return the kind of terminal."""
        return self.environ.get("TERM", "")

    def loaded(self) -> Loaded:
        """Return the settings as they are now."""
        return load_settings(environ=self.environ, flags=self.flags, assignments=(), profile=self.profile)

    @property
    def status(self) -> str:
        """Return the line below the prompt."""
        settings = self.loaded().settings
        home = Path(self.environ.get("HOME", "/nonexistent"))
        folder = f"~/{self.cwd.relative_to(home)}" if self.cwd.is_relative_to(home) else str(self.cwd)
        return f"{settings.model or 'no model'} · {settings.approval_mode} · {folder}"

    def history(self) -> History:
        """Return what was typed before, kept for this user alone."""
        path = data_dir(self.environ) / "history"
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
        except OSError:
            return InMemoryHistory()
        return FileHistory(str(path))

    def warm_up(self) -> None:
        """Load what the first request needs."""
        import agent.app  # noqa: F401 (loaded for later)

    def open_app(self, session_id: str | None, review: "Review | None" = None) -> "App":
        """Return a run in the session, or in a new one."""
        from agent.app import App, RunOptions
        from agent.run_scope import Place

        place = Place(data_dir=data_dir(self.environ), session_id=session_id, cwd=self.cwd)
        return App(
            loaded=self.loaded(),
            environ=self.environ,
            options=RunOptions(place=place, is_person_present=True, review=review),
        )

    def run_agent(self, *words: str) -> None:
        """Run `agent …` as a program of its own, on this terminal."""
        subprocess.run([sys.executable, "-m", "cli", *words], cwd=self.cwd, check=False)

    def page(self, text: str) -> None:
        """Show a long text in the person's pager."""
        pager = self.environ.get("PAGER") or "less -R"
        subprocess.run(pager, shell=True, input=text.encode(), check=False)  # noqa: S602 (the person's own setting)
