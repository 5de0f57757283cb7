"""What the first request with tools sends, byte for byte, and how large it is."""

import json
from pathlib import Path

import pytest

from tests.agent.prompts.first_request import MODELS, SNAPSHOTS, capture, snapshot
from tests.cli.terminal_user import User

pytestmark = pytest.mark.slow
MAX_BYTES = 9000


@pytest.mark.parametrize("name", MODELS)
def test_the_first_request_is_the_one_of_the_snapshot_and_small(tmp_path: Path, name: str) -> None:
    body = capture(User(home=tmp_path), MODELS[name])
    assert "<environment>\\nfolder: " in json.dumps(body)
    assert snapshot(body) == (SNAPSHOTS / f"{name}.json").read_text()
    assert len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()) <= MAX_BYTES
