"""Render figures for a terminal, a document, or another program."""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from bench.measure import BenchResult

_HEAD = ("what", "measured", "at most", "verdict", "how")
_END = "<!-- end of table -->\n"


def render_text(figures: Sequence[BenchResult]) -> str:
    """Return the table for a terminal."""
    rows = [_HEAD, *map(_row, figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def render_markdown(figures: Sequence[BenchResult]) -> str:
    """Return the table for a document."""
    rows = [_HEAD, ("---", "---:", "---:", "---", "---"), *map(_row, figures)]
    machine = f"Python {platform.python_version()}, {os.cpu_count()} processors.\n\n"
    return machine + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def update_document(path: Path, rendered: str, *, program: str) -> None:
    """Replace the table of a program in a document, or append it."""
    mark = f"<!-- table: written by `{program} --markdown FILE` -->\n"
    text = path.read_text() if path.exists() else ""
    before, begin, rest = text.partition(mark)
    after = rest.partition(_END)[2] if begin else ""
    path.write_text(f"{before}{mark}{rendered}{_END}{after}")


def save(path: Path, figures: Sequence[BenchResult]) -> None:
    """Save the figures as JSON."""
    rows = [
        {
            "what": figure.what,
            "measured": figure.measured,
            "limit": figure.limit,
            "unit": figure.unit,
            "is_met": figure.is_met,
            "detail": figure.detail,
        }
        for figure in figures
    ]
    path.write_text(json.dumps(rows, ensure_ascii=False, indent=2) + "\n")


def _row(figure: BenchResult) -> tuple[str, ...]:
    verdict = "ok" if figure.is_met else "MISSED"
    return figure.what, _amount(figure.measured, figure), _amount(figure.limit, figure), verdict, figure.detail


def _amount(value: float, figure: BenchResult) -> str:
    number = f"{value:.2f}" if figure.unit in ("×", "kB") else f"{value:.1f}" if figure.unit else f"{value:g}"
    return f"{number} {figure.unit}".strip()
