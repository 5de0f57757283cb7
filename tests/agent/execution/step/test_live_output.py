"""The last lines of a running call."""

from agent.execution.step.tool_calls import LiveOutput


async def report_of(*chunks: bytes) -> list[str]:
    reports: list[str] = []
    live = LiveOutput(reports.append)
    for chunk in chunks:
        live.feed(chunk)
    live.flush()
    return reports


async def test_only_the_last_complete_lines_are_reported() -> None:
    assert await report_of(b"".join(b"line %d\n" % number for number in range(9)), b"half") == [
        "line 4\nline 5\nline 6\nline 7\nline 8"
    ]


async def test_a_progress_bar_counts_as_lines() -> None:
    assert await report_of(b"10 %\r", b"20 %\r\x1b[K") == ["10 %\n20 %"]


async def test_an_incomplete_line_is_not_reported() -> None:
    assert await report_of(b"password=hun") == []
