"""The measuring script counts what it says it counts."""

import pytest

from tests.house import figures
from tests.house.figures import BEFORE, Figure, SourceFile
from tests.house.source_tree import ROOT, module


def source_file(name: str, source: str = "", *, lines: int = 10) -> SourceFile:
    return SourceFile(module=module(name, source), lines=lines)


def test_folders_that_import_each_other_are_found() -> None:
    files = [
        source_file("agent.a.one", "from agent.b.two import x"),
        source_file("agent.b.two", "from agent.c.three import x"),
        source_file("agent.c.three", "from agent.a.four import x"),
        source_file("agent.a.four"),
        source_file("agent.d.five", "from agent.a.four import x"),
    ]
    assert figures.folder_cycles(files) == [["agent.a", "agent.b", "agent.c"]]


def test_a_lazy_import_is_not_an_edge_between_folders() -> None:
    files = [
        source_file("agent.a.one", "from agent.b.two import x"),
        source_file("agent.b.two", "def f():\n    from agent.a.one import x"),
    ]
    assert figures.folder_cycles(files) == []


def test_a_short_file_counts_only_with_one_importer_at_the_top() -> None:
    files = [
        source_file("agent.a", "from agent.short import x\nfrom agent.long import x\nfrom agent.shared import x"),
        source_file("agent.b", "from agent.shared import x\ndef f():\n    from agent.lazy import x", lines=100),
        source_file("agent.short"),
        source_file("agent.long", lines=60),
        source_file("agent.shared"),
        source_file("agent.lazy"),
    ]
    assert figures.small_single_imports(files) == ["agent.short (10 lines) ← agent.a"]


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
