"""The run harness as a fixture, and the requests that its scripted models received."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.model.port import ModelRequest, StreamItem
from agent.model.recorded.script import ScriptedModel
from tests.agent.orchestrator.run_harness import RunHarness


@pytest.fixture
def harness(tmp_path: Path) -> RunHarness:
    return RunHarness(home=tmp_path)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[ModelRequest]:
    """Every request to a scripted model, in order."""
    seen: list[ModelRequest] = []
    stream = ScriptedModel.stream

    def recording(self: ScriptedModel, request: ModelRequest) -> AsyncIterator[StreamItem]:
        seen.append(request)
        return stream(self, request)

    monkeypatch.setattr(ScriptedModel, "stream", recording)
    return seen
