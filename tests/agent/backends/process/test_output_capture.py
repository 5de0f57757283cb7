"""Head, tail and true size of outputs of any length."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent.backends.process.output_capture import OutputCollector


@given(st.lists(st.binary(max_size=50), max_size=40), st.integers(2, 200))
def test_nothing_is_lost_but_the_middle(pieces: list[bytes], cap: int) -> None:
    collector = OutputCollector(cap_bytes=cap)
    for piece in pieces:
        collector.feed(piece)
    whole = b"".join(pieces)
    assert collector.total_bytes == len(whole)
    if len(whole) <= cap:
        assert (collector.output, collector.cut_at) == (whole, None)
    else:
        half = cap // 2
        assert (collector.output, collector.cut_at) == (whole[:half] + whole[-half:], half)


def test_the_file_has_a_limit_and_the_count_has_none(tmp_path: Path) -> None:
    collector = OutputCollector(cap_bytes=10, spool=tmp_path / "new" / "file", spool_limit=25)
    for _ in range(10):
        collector.feed(b"0123456789")
    collector.close()
    assert collector.total_bytes == 100
    assert (tmp_path / "new" / "file").read_bytes() == b"0123456789" * 2 + b"01234"
    assert (tmp_path / "new" / "file").stat().st_mode & 0o777 == 0o600


def test_short_outputs_make_no_file(tmp_path: Path) -> None:
    collector = OutputCollector(cap_bytes=10, spool=tmp_path / "file")
    collector.feed(b"short")
    collector.close()
    assert collector.spool is None
    assert list(tmp_path.iterdir()) == []


def test_an_impossible_file_does_not_stop_the_output(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    collector = OutputCollector(cap_bytes=4, spool=tmp_path / "plain" / "file")
    collector.feed(b"0123456789")
    assert (collector.output, collector.spool) == (b"0189", None)
