"""Head, tail and size of captured output."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent.backends.process.output_capture import OutputCollector


@given(st.lists(st.binary(max_size=50), max_size=40), st.integers(2, 200))
def test_only_the_middle_of_long_output_is_dropped(pieces: list[bytes], cap: int) -> None:
    collector = OutputCollector(cap_bytes=cap)
    for piece in pieces:
        collector.feed(piece)
    full = b"".join(pieces)
    assert collector.total_bytes == len(full)
    if len(full) <= cap:
        assert (collector.output, collector.cut_at) == (full, None)
    else:
        half = cap // 2
        assert (collector.output, collector.cut_at) == (full[:half] + full[-half:], half)


def test_the_spool_file_has_a_limit_and_the_count_has_none(tmp_path: Path) -> None:
    collector = OutputCollector(cap_bytes=10, spool=tmp_path / "new" / "file", spool_limit=25)
    for _ in range(10):
        collector.feed(b"0123456789")
    collector.close()
    assert collector.total_bytes == 100
    assert (tmp_path / "new" / "file").read_bytes() == b"0123456789" * 2 + b"01234"
    assert (tmp_path / "new" / "file").stat().st_mode & 0o777 == 0o600


def test_short_output_creates_no_file(tmp_path: Path) -> None:
    collector = OutputCollector(cap_bytes=10, spool=tmp_path / "file")
    collector.feed(b"short")
    collector.close()
    assert collector.spool is None
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_created_does_not_lose_the_output(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    collector = OutputCollector(cap_bytes=4, spool=tmp_path / "plain" / "file")
    collector.feed(b"0123456789")
    assert (collector.output, collector.spool) == (b"0189", None)
