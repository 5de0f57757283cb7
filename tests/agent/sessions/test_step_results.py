"""Finished steps on their shelf: found by their address, believed only when they are what was kept."""

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


async def test_a_result_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    await StepResultStore(tmp_path / "steps").put(KEY, RESPONSE)
    assert StepResultStore(tmp_path / "steps").get(KEY) == RESPONSE
    assert StepResultStore(tmp_path / "steps").get(OTHER) is None


async def test_only_the_owner_can_read_a_result(tmp_path: Path) -> None:
    shelf = StepResultStore(tmp_path / "steps")
    await shelf.put(KEY, RESPONSE)
    assert (tmp_path / "steps").stat().st_mode & 0o777 == 0o700
    assert shelf.path_for(KEY).stat().st_mode & 0o777 == 0o600
    assert names(tmp_path / "steps") == [f"{KEY}.json"]


@pytest.mark.parametrize("cut", range(0, 900, 60))
async def test_a_torn_result_is_no_hit(tmp_path: Path, cut: int) -> None:
    shelf = StepResultStore(tmp_path)
    await shelf.put(KEY, RESPONSE)
    whole = shelf.path_for(KEY).read_bytes()
    assert len(whole) > 900
    shelf.path_for(KEY).write_bytes(whole[:cut])
    assert shelf.get(KEY) is None


async def test_a_result_of_another_step_or_with_other_words_is_no_hit(tmp_path: Path) -> None:
    shelf = StepResultStore(tmp_path)
    await shelf.put(KEY, RESPONSE)
    shelf.path_for(OTHER).write_bytes(shelf.path_for(KEY).read_bytes())
    assert shelf.get(OTHER) is None
    whole = json.loads(shelf.path_for(KEY).read_bytes())
    whole["response"]["summary"] = "something else"
    shelf.path_for(KEY).write_text(json.dumps(whole))
    assert shelf.get(KEY) is None


@pytest.mark.parametrize("content", [b"", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"v": 2}'])
def test_a_foreign_file_is_no_hit(tmp_path: Path, content: bytes) -> None:
    shelf = StepResultStore(tmp_path)
    shelf.path_for(KEY).write_bytes(content)
    assert shelf.get(KEY) is None


@pytest.mark.parametrize("key", ["", "../../etc/passwd", "a", "A" * 64, "a" * 64 + "/"])
def test_an_address_that_is_a_path_trick_finds_nothing(tmp_path: Path, key: str) -> None:
    assert StepResultStore(tmp_path).get(key) is None


async def test_no_secret_is_kept(tmp_path: Path) -> None:
    shelf = StepResultStore(tmp_path, redact=lambda text: text.replace("three", "***"))
    await shelf.put(KEY, RESPONSE)
    assert "three" not in shelf.path_for(KEY).read_text()
    found = shelf.get(KEY)
    assert found and found.text == "*** lines \ud800"


async def test_a_result_that_cannot_be_kept_is_told_and_the_old_one_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = StepResultStore(tmp_path)
    await shelf.put(KEY, RESPONSE)
    before = shelf.path_for(KEY).read_bytes()

    def no_space(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_write.os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        await shelf.put(KEY, RESPONSE)
    assert shelf.path_for(KEY).read_bytes() == before
    assert names(tmp_path) == [f"{KEY}.json"]
