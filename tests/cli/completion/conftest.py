"""A user with settings and a configuration folder."""

from pathlib import Path

import pytest

from tests.cli.terminal_user import User

SETTINGS = """\
model = "openai/gpt-5-mini"
allow = ["git push"]
[keys]
openai = "sk-not-a-key"
[profile.work]
planner_model = "anthropic/claude-sonnet-4-5"
"""


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    """A user whose settings and sessions the test process shares."""
    user = User(home=tmp_path, environ={"AGENT_CONFIG_DIR": str(tmp_path / "config")})
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(SETTINGS)
    (tmp_path / "config" / "config.toml").chmod(0o600)
    for name in ("HOME", "AGENT_SANDBOX", "AGENT_CONFIG_DIR"):
        monkeypatch.setenv(name, user.environment()[name])
    return user
