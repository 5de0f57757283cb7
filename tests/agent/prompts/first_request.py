"""The first request as three servers get it; `python -m tests.agent.prompts.first_request` saves it.

The snapshots show what a change of a prompt, a tool or the opening sends.
"""

import json
import re
import tempfile
from pathlib import Path

from tests.cli.terminal_user import User
from tests.provider.replies import Text
from tests.provider.threaded import ThreadedProvider

SNAPSHOTS = Path(__file__).with_name("snapshots")
MODELS = {"openai": "openai/test-model", "anthropic": "anthropic/test-model", "local": "llamacpp/test-model"}
_ENVIRONMENT = re.compile(r"(?s)<environment>.*?</environment>")


def capture(user: User, model: str) -> dict[str, object]:
    """Run a task against a local server and return its first request."""
    project = user.home / "project"
    project.mkdir()
    for name in ("area.py", "README.md", "test_area.py"):
        (project / name).touch()
    with ThreadedProvider(Text("Done."), Text("Done.")) as provider:
        address = ("--set", f"api_base={provider.base_url}", "--set", "api_key=sk-test")
        words = ("run", "Fix the bug in area.py.", "--planning", "auto", "--model", model, *address)
        user.agent(*words, "--bare", "-C", str(project))
    return provider.requests[0].body


def snapshot(body: dict[str, object]) -> str:
    """Return a request as text that is the same on every machine."""
    return json.dumps(_without_place(body), indent=1, ensure_ascii=False) + "\n"


def _without_place(value: object) -> object:
    if isinstance(value, str):
        return _ENVIRONMENT.sub("<environment>…</environment>", value)
    if isinstance(value, dict):
        return {key: _without_place(item) for key, item in value.items()}
    return [_without_place(item) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    for name, model in MODELS.items():
        with tempfile.TemporaryDirectory() as home:
            folder = Path(home, "home")
            folder.mkdir()
            (SNAPSHOTS / f"{name}.json").write_text(snapshot(capture(User(home=folder), model)))
