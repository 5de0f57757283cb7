"""Figures are compared with their limits, and a missed limit fails the benchmark."""

import json
from pathlib import Path

import pytest

import bench.__main__ as command
from bench import table
from bench.measure import Bench, BenchResult, milliseconds, ratio, sample_interleaved

MET = BenchResult(what="a", measured=1.5, limit=1.6, unit="×", detail="how")
MISSED = BenchResult(what="b", measured=61, limit=60, unit="ms", detail="how")


def test_a_ratio_compares_medians() -> None:
    figure = ratio("x", 2.0, [0.2, 9.0, 0.3], [0.1, 0.1, 0.2])
    assert (figure.measured, figure.is_met) == (pytest.approx(3.0), False)
    assert figure.detail == "300 ms against 100 ms, 3 interleaved runs of each"


def test_a_time_is_a_median_in_milliseconds() -> None:
    figure = milliseconds("x", 5, [0.001, 0.005, 0.030])
    assert (figure.measured, figure.is_met, figure.detail) == (5.0, True, "median of 3, slowest 30 ms")


def test_samples_are_interleaved_and_the_first_round_is_a_warm_up() -> None:
    done: list[str] = []

    def measure(name: str) -> float:
        done.append(name)
        return float(len(done))

    assert sample_interleaved(2, lambda: measure("a"), lambda: measure("b")) == [[3.0, 5.0], [4.0, 6.0]]
    assert done == ["a", "b"] * 3


def test_a_table_in_a_document_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# before\n")
    table.update_document(page, table.render_markdown([MISSED]), program="bench")
    page.write_text(page.read_text() + "after\n")
    table.update_document(page, table.render_markdown([MET]), program="bench")
    lines = page.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("# before", "after")
    assert "| a | 1.50 × | 1.60 × | ok | how |" in lines
    assert not [line for line in lines if "MISSED" in line]


@pytest.mark.parametrize(("figures", "exit_code"), [([MET], 0), ([MET, MISSED], 1)])
def test_a_missed_limit_is_shown_saved_and_fails(
    figures: list[BenchResult],
    exit_code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    saved = tmp_path / "figures.json"
    monkeypatch.setattr(command, "BENCHES", (Bench(name="one", run=lambda: figures),))
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["bench", "one", "--json", str(saved)])
    assert command.main() == exit_code
    assert ("MISSED" in capsys.readouterr().out) == bool(exit_code)
    assert [row["is_met"] for row in json.loads(saved.read_text())] == [figure.is_met for figure in figures]


def test_an_unknown_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "speed"])
    with pytest.raises(SystemExit, match="2"):
        command.main()
