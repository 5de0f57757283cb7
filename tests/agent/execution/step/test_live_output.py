"""The last lines of a running call."""

from agent.execution.step.tool_calls import LiveOutput


async def report_of(*chunks: bytes) -> list[str]:
    reports: list[str] = []
    live = LiveOutput(reports.append)
    for chunk in chunks:
        live.feed(chunk)
    live.flush()
    return reports


async def test_only_complete_lines_are_reported() -> None:
    assert await report_of(b"line 1\nline 2\n", b"half") == ["line 1\nline 2"]


async def test_a_progress_bar_counts_as_lines() -> None:
    assert await report_of(b"10 %\r", b"20 %\r\x1b[K") == ["10 %\n20 %"]


async def test_an_incomplete_line_is_not_reported() -> None:
    assert await report_of(b"password=hun") == []


async def test_a_long_key_is_reported_from_its_first_line_so_that_it_can_be_masked() -> None:
    key = b"-----BEGIN RSA PRIVATE KEY-----\n" + b"MIIEpAIBAAKCAQEA\n" * 1000 + b"-----END RSA PRIVATE KEY-----\n"
    (report,) = await report_of(b"before\n", key)
    assert report.startswith("before\n-----BEGIN") and report.endswith("PRIVATE KEY-----")
