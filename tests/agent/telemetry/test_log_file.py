"""The log file is rotated by size."""

from pathlib import Path

from agent.telemetry.log_file import KEPT, LogFile, read_log


def test_a_full_file_is_rotated_and_the_oldest_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "agent.jsonl"
    log = LogFile(path, max_bytes=200)
    for number in range(100):
        log.write({"number": number})
    log.close()
    names = sorted(file.name for file in path.parent.iterdir())
    assert names[-KEPT:] == [f"agent.jsonl.{number}" for number in range(1, KEPT + 1)]
    assert all(file.stat().st_size < 300 for file in path.parent.iterdir())
    numbers = [line["number"] for line in read_log(path)]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 99


def test_two_writers_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.jsonl"
    one, two = LogFile(path, max_bytes=500), LogFile(path, max_bytes=500)
    for number in range(20):
        (one if number % 2 else two).write({"number": number})
    assert sorted(int(str(line["number"])) for line in read_log(path)) == list(range(20))
    one.close()
    two.close()


def test_damaged_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "agent.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b"\n\xff\n[1]\n{"c": 2}\n')
    assert list(read_log(path)) == [{"a": 1}, {"c": 2}]
