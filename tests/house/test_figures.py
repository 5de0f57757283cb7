"""The measuring script counts what it says it counts."""

import pytest

from tests.house import figures
from tests.house.figures import BEFORE, Figure
from tests.house.source_tree import ROOT


def test_the_table_sits_between_its_markers() -> None:
    page = f"before\n{figures.BEGIN}\nold\n{figures.END}\nafter\n"
    figure = Figure(what="source files", value="7")
    updated = figures.update_table(page, [figure])
    assert f"| source files | {BEFORE['source files']} | 7 |" in updated
    assert updated.startswith("before\n") and updated.endswith("\nafter\n") and "old" not in updated


def test_the_page_has_every_static_figure() -> None:
    page = figures.PAGE.read_text()
    rows = [figure.what for figure in figures.static_figures(figures.source_files(ROOT))]
    assert [what for what in rows if f"| {what} |" not in page] == []
    assert rows == list(BEFORE)[: len(rows)]


@pytest.mark.slow
def test_one_run_is_traced_to_its_end() -> None:
    report = figures.trace_one_run(ROOT)
    assert {"cli.main", "agent.app", "tooling.invoke"} <= set(report["modules"])
    assert any(name.endswith("agent/app.py:App.run") for name in report["functions"])
    assert set(report["functions"]) < set(report["code"])
