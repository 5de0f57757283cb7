"""Size and shape of the source in figures: `python -m tests.house.figures [--write] [--list] [CHECKOUT]`."""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pexpect

from tests.house.folder_rules import MAX_MODULES, SMALL_LINES, crowded_folders, folder_cycles, small_modules
from tests.house.source_tree import ROOT, Module, read_modules

PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
TRACER = Path(__file__).with_name("trace_run.py")
# The same script on the last commit before the source was rearranged.
BEFORE = {
    "source files": "441",
    "lines a file: median, 90th percentile, longest": "86, 182, 385",
    "folders with more than 20 modules": "8",
    "modules and folders in a cycle with their siblings": "10",
    "files under 60 lines with one importer": "38",
    "own modules loaded by a one-step run with an approval": "266",
    "own functions called in it": "925 in 182 files",
    "the same with class bodies and comprehensions": "1,469 in 222 files",
}
_SCRIPT = (
    {
        "match": {"purpose": "planner"},
        "text": json.dumps({"steps": [{"id": "s1", "title": "Push", "instruction": "Push."}]}),
    },
    {
        "match": {"purpose": "step", "step": "s1"},
        "tool_calls": [{"name": "run_command", "arguments": {"command": "git push"}}],
    },
    {"match": {"purpose": "step", "step": "s1"}, "text": "Pushed."},
)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One row: what is counted, how much it is, and which files or folders it is about."""

    what: str
    value: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """One module that is not a package."""

    module: Module
    lines: int

    @property
    def name(self) -> str:
        return self.module.name

    @property
    def folder(self) -> str:
        return self.name.rpartition(".")[0]


def source_files(root: Path) -> list[SourceFile]:
    """Return the modules of a checkout without its `__init__.py` files."""
    return [
        SourceFile(module=module, lines=len((root / f"{module.name.replace('.', '/')}.py").read_text().splitlines()))
        for module in read_modules(root)
        if not module.is_package
    ]


def static_figures(files: list[SourceFile]) -> Iterator[Figure]:
    """Count files, lines, folders and imports."""
    yield Figure(what="source files", value=f"{len(files):,}")
    lines = sorted(file.lines for file in files)
    p90 = statistics.quantiles(lines, n=10)[-1]
    summary = f"{statistics.median(lines):.0f}, {p90:.0f}, {lines[-1]}"
    yield Figure(what="lines a file: median, 90th percentile, longest", value=summary)
    modules = [file.module for file in files]
    yield _counted(f"folders with more than {MAX_MODULES} modules", crowded_folders(modules))
    yield _counted("modules and folders in a cycle with their siblings", folder_cycles(modules))
    small = small_modules(modules, {file.name: file.lines for file in files})
    yield _counted(f"files under {SMALL_LINES} lines with one importer", small)


def _counted(what: str, items: Iterable[str]) -> Figure:
    names = tuple(items)
    return Figure(what=what, value=str(len(names)), items=names)


def run_figures(root: Path) -> Iterator[Figure]:
    """Count what one run loads and calls: one step, one command, one approval, on a terminal."""
    report = trace_one_run(root)
    modules, functions, code = report["modules"], report["functions"], report["code"]
    yield Figure(what="own modules loaded by a one-step run with an approval", value=f"{len(modules):,}")
    yield Figure(what="own functions called in it", value=f"{len(functions):,} in {_files(functions)} files")
    yield Figure(what="the same with class bodies and comprehensions", value=f"{len(code):,} in {_files(code)} files")


def _files(names: Iterable[str]) -> int:
    return len({name.rpartition(":")[0] for name in names})


def trace_one_run(root: Path) -> dict[str, list[str]]:
    """Run the program of a checkout with a scripted model, answer its one question, and return the trace."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "work").mkdir()
        (home / "script.jsonl").write_text("\n".join(json.dumps(line) for line in _SCRIPT))
        command = ("run", "--plain", "--model", "script:script.jsonl", "-C", "work", "push it")
        child = pexpect.spawn(
            sys.executable,
            [str(TRACER), "report.json", str(root), *command],
            env=_environment(home, root),
            cwd=folder,
            encoding="utf-8",
            timeout=60,
            dimensions=(40, 200),
        )
        child.expect_exact("[y]")
        child.expect_exact("[n]")
        child.expect(": $")
        child.sendline("y")
        child.expect(pexpect.EOF)
        child.close()
        return dict(json.loads((home / "report.json").read_text()))


def _environment(home: Path, root: Path) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "HOME": str(home),
        "AGENT_SANDBOX": str(home / "data"),
        "PYTHONPATH": str(root),
        "TERM": "xterm-256color",
        "NO_COLOR": "1",
        "AGENT_PLANNING": "always",
    }


def table(figures: Iterable[Figure]) -> str:
    """Return the figures as Markdown, beside those from before."""
    rows = [f"| {figure.what} | {BEFORE.get(figure.what, '')} | {figure.value} |" for figure in figures]
    return "\n".join(("| what | before | now |", "|---|---|---|", *rows))


def update_table(page: str, figures: Iterable[Figure]) -> str:
    """Return the page with its table replaced."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table(figures)}\n{END}{tail}"


def main() -> None:
    """Print the figures of this checkout or another, or write them into the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.house.figures", description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, metavar="CHECKOUT", help="another checkout")
    parser.add_argument("--list", action="store_true", help="also list the files and folders behind each figure")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    root = options.root.resolve()
    figures = [*static_figures(source_files(root)), *run_figures(root)]
    for figure in figures:
        print(f"{figure.what}: {figure.value}")
        for item in figure.items if options.list else ():
            print(f"    {item}")
    if options.write:
        PAGE.write_text(update_table(PAGE.read_text(), figures))


if __name__ == "__main__":
    main()
