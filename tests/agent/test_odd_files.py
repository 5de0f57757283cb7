"""A FIFO in place of a file that the program reads by itself is passed over: nothing waits for a writer."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.hooks.command_config import read_commands
from agent.hooks.trust import TrustStore
from agent.skills.skill import read_skill
from agent.telemetry.log_file import LogFile, log_path, read_log
from agent.vocabulary.errors import AgentError
from tooling.approvals.script_content import script_digests
from tooling.contract.action import Script
from tooling.images.header import is_image_file
from tooling.mcp.listing_store import ListingStore
from tooling.safety.secrets import secret_files
from tooling.safety.secrets.redact import Redactor
from tooling.safety.secrets.secret_files import SecretFiles


def finishes(call: Callable[[], object]) -> bool:
    """Whether a call returns or raises an error of ours, instead of waiting."""
    done = threading.Event()

    def work() -> None:
        try:
            call()
        except AgentError:
            pass
        done.set()

    threading.Thread(target=work, daemon=True).start()
    return done.wait(20)


def test_the_log_is_neither_written_to_nor_read_from_something_else(tmp_path: Path) -> None:
    path = log_path(tmp_path)
    path.parent.mkdir()
    os.mkfifo(path)
    assert finishes(lambda: LogFile(path).write({"event": "x"}))
    assert finishes(lambda: list(read_log(path)))


def test_settings_hooks_skills_and_servers_are_not_waited_for(tmp_path: Path) -> None:
    for name in ("hooks.json", "trusted.json", "approved.json", "SKILL.md", "shot.png"):
        os.mkfifo(tmp_path / name)
    assert finishes(lambda: read_commands(tmp_path / "hooks.json"))
    assert finishes(lambda: TrustStore(tmp_path).all())
    assert finishes(lambda: ListingStore(tmp_path).approved("mcp__x__y"))
    assert finishes(lambda: read_skill(tmp_path, "user"))
    assert finishes(lambda: is_image_file(tmp_path / "shot.png"))


def test_a_command_that_exchanges_files_stops_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / ".env")
    # As if it had been a file a moment before.
    file = Path(__file__).stat()
    monkeypatch.setattr(Path, "stat", lambda path, **options: file)
    monkeypatch.setattr(secret_files.SecretFileFinder, "find", lambda finder, folders: [tmp_path / ".env"])
    assert finishes(lambda: SecretFiles(Redactor()).learn([tmp_path]))
    assert finishes(lambda: script_digests((Script(command="./x", path=tmp_path / ".env"),)))
