"""Cached step results are found by key and verified when they are read."""

import asyncio
import json
from pathlib import Path

import pytest

from agent.sessions.step_results import StepResultStore
from agent.vocabulary.step import CallFact, Check, ExecutorResponse, StepOutput
from agent.vocabulary.usage import Usage
from tooling.files import atomic_write

KEY, OTHER = "a" * 64, "b" * 64
RESPONSE = ExecutorResponse(
    task_id="s1",
    status="partial",
    summary="counted",
    outputs=(StepOutput(type="text", content="three lines \ud800"),),
    tool_calls=(
        CallFact(
            tool="run_command", args={"command": "wc -l"}, status="ok", exit_code=0, output_len=2, output_preview="3"
        ),
    ),
    usage=Usage(input_tokens=7, cost_usd=0.001),
    checks=(Check(command="true", exit_code=0),),
    verified=True,
)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_a_stored_result_is_read_back_unchanged(tmp_path: Path) -> None:
    await StepResultStore(tmp_path / "steps").put(KEY, RESPONSE)
    assert StepResultStore(tmp_path / "steps").get(KEY) == RESPONSE
    assert StepResultStore(tmp_path / "steps").get(OTHER) is None


async def test_results_that_arrive_during_a_write_share_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("tooling.files.atomic_write.fsync_dir", synced.append)
    store = StepResultStore(tmp_path / "steps")
    (tmp_path / "steps").mkdir()
    store.path_for("c" * 64).mkdir()
    keys = [*(f"{number:064x}" for number in range(20)), "c" * 64]
    ends = await asyncio.gather(*(store.put(key, RESPONSE) for key in keys), return_exceptions=True)
    # A file that cannot be written fails alone.
    assert [type(end).__name__ for end in ends] == [*["NoneType"] * 20, "IsADirectoryError"]
    assert all(store.get(key) == RESPONSE for key in keys[:20])
    assert len(synced) <= 2


async def test_only_the_owner_can_read_a_result(tmp_path: Path) -> None:
    store = StepResultStore(tmp_path / "steps")
    await store.put(KEY, RESPONSE)
    assert (tmp_path / "steps").stat().st_mode & 0o777 == 0o700
    assert store.path_for(KEY).stat().st_mode & 0o777 == 0o600
    assert names(tmp_path / "steps") == [f"{KEY}.json"]


@pytest.mark.parametrize("cut", range(0, 780, 60))
async def test_a_truncated_result_is_a_miss(tmp_path: Path, cut: int) -> None:
    store = StepResultStore(tmp_path)
    await store.put(KEY, RESPONSE)
    data = store.path_for(KEY).read_bytes()
    assert len(data) > 780
    store.path_for(KEY).write_bytes(data[:cut])
    assert store.get(KEY) is None


async def test_a_result_with_another_key_or_changed_content_is_a_miss(tmp_path: Path) -> None:
    store = StepResultStore(tmp_path)
    await store.put(KEY, RESPONSE)
    store.path_for(OTHER).write_bytes(store.path_for(KEY).read_bytes())
    assert store.get(OTHER) is None
    document = json.loads(store.path_for(KEY).read_bytes())
    document["response"]["summary"] = "something else"
    store.path_for(KEY).write_text(json.dumps(document))
    assert store.get(KEY) is None


@pytest.mark.parametrize("content", [b"", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"v": 2}'])
def test_a_foreign_file_is_a_miss(tmp_path: Path, content: bytes) -> None:
    store = StepResultStore(tmp_path)
    store.path_for(KEY).write_bytes(content)
    assert store.get(KEY) is None


@pytest.mark.parametrize("key", ["", "../../etc/passwd", "a", "A" * 64, "a" * 64 + "/"])
def test_a_malformed_key_is_a_miss(tmp_path: Path, key: str) -> None:
    assert StepResultStore(tmp_path).get(key) is None


async def test_secrets_are_redacted_before_storing(tmp_path: Path) -> None:
    store = StepResultStore(tmp_path, redact=lambda text: text.replace("three", "***"))
    await store.put(KEY, RESPONSE)
    assert "three" not in store.path_for(KEY).read_text()
    found = store.get(KEY)
    assert found and found.text == "*** lines \ud800"


async def test_a_failed_write_raises_and_keeps_the_old_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = StepResultStore(tmp_path)
    await store.put(KEY, RESPONSE)
    before = store.path_for(KEY).read_bytes()

    def no_space(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_write.os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        await store.put(KEY, RESPONSE)
    assert store.path_for(KEY).read_bytes() == before
    assert names(tmp_path) == [f"{KEY}.json"]
