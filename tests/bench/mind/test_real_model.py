"""The runner of the real model counts what went through its proxy, and ends an agent at the limit of requests."""

import json
import sys
from pathlib import Path

import pytest

from bench.mind import real_model
from bench.program import BenchError
from bench.replies import DONE, command, offers_tools, plan
from tests.provider.replies import Reply
from tests.provider.server import ReceivedRequest
from tests.provider.threaded import ThreadedProvider

pytestmark = [pytest.mark.slow, pytest.mark.needs("bwrap")]


def _results(
    monkeypatch: pytest.MonkeyPatch, folder: Path, provider: ThreadedProvider, *flags: str
) -> dict[str, object]:
    results = folder / "results.jsonl"
    words = ["real_model", "--only", "count", "--api-base", provider.base_url, "--results", str(results), *flags]
    monkeypatch.setattr(sys, "argv", words)
    real_model.main()
    (line,) = results.read_text().splitlines()
    row: dict[str, object] = json.loads(line)
    return row


def _solve(request: ReceivedRequest) -> Reply:
    if not offers_tools(request):
        return plan(1)
    has_result = '"role":"tool"' in request.raw.decode().replace(" ", "")
    return DONE if has_result else command("grep -rh TODO src | wc -l > count.txt")


def test_a_solved_task_is_a_line_with_its_requests_and_conditions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with ThreadedProvider(otherwise=_solve) as provider:
        row = _results(monkeypatch, tmp_path, provider, "--temperature", "0.7")
        sent = [request.body for request in provider.requests if request.method == "POST"]
    assert (row["solved"], row["requests"], row["refused"]) == (True, len(sent), 0)
    assert row["prompt_tokens"] == 100 * len(sent)
    assert {body["temperature"] for body in sent} == {0.7}


def test_an_agent_that_does_not_end_is_refused_at_the_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    numbers = iter(range(100))

    def call_for_ever(request: ReceivedRequest) -> Reply:
        return command(f"true {next(numbers)}") if offers_tools(request) else plan(1)

    with ThreadedProvider(otherwise=call_for_ever) as provider:
        row = _results(monkeypatch, tmp_path, provider, "--limit-requests", "3")
    assert (row["solved"], row["requests"]) == (False, 3)


def test_an_agent_that_never_reaches_the_model_is_no_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with ThreadedProvider() as provider, pytest.raises(BenchError, match="sent no request"):
        _results(monkeypatch, tmp_path, provider, "--agent", "mini-swe-agent", "--mini", "/bin/false")
    assert not (tmp_path / "results.jsonl").exists()
