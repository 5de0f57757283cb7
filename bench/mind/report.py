"""`python -m bench.mind.report FILE...`: join results of the real model into a table, every run that has a line."""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from bench import table
from bench.mind.real_model import TASKS

Row: TypeAlias = Mapping[str, object]


def main() -> int:
    """Print the table, and write it into a document if asked to."""
    parser = argparse.ArgumentParser(prog="python -m bench.mind.report", description=__doc__)
    parser.add_argument("results", nargs="+", type=Path, metavar="FILE", help="written by bench.mind.real_model")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table into a document")
    options = parser.parse_args()
    rows = [json.loads(line) for path in options.results for line in path.read_text().splitlines()]
    rendered = render(rows)
    print(rendered, end="")
    if options.markdown:
        table.update_document(options.markdown, rendered, program="python -m bench.mind.report")
    return 0


def render(rows: Sequence[Row]) -> str:
    """Return one table of totals with a line per run, and one with a line per task."""
    runs: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        runs[str(row["label"])].append(row)
    for label, lines in runs.items():
        _check(label, lines)
    names = [task.name for task in TASKS]
    totals: list[Sequence[str]] = [
        ("run", "solved", "requests a task", "tokens read", "of them cached", "tokens written", "conditions"),
        ("---", "---:", "---:", "---:", "---:", "---:", "---"),
        *(_total(*run) for run in runs.items()),
    ]
    cells = {(str(row["label"]), str(row["task"])): _cell(row) for row in rows}
    by_task = [("task", *runs), ("---", *["---"] * len(runs))]
    by_task += [(name, *(cells.get((label, name), "–") for label in runs)) for name in names]
    return f"{_lines(totals)}\n{_lines(by_task)}"


def _check(label: str, rows: Sequence[Row]) -> None:
    """Refuse to add up lines that were obtained under different conditions."""
    tasks = [row["task"] for row in rows]
    if len(set(tasks)) < len(tasks):
        sys.exit(f"error: {label} has more than one line for a task")
    if len({json.dumps(row["conditions"]) for row in rows}) > 1:
        sys.exit(f"error: {label} mixes conditions")


def _total(label: str, rows: Sequence[Row]) -> tuple[str, ...]:
    solved = f"{sum(bool(row['solved']) for row in rows)} of {len(rows)}"
    conditions = rows[0]["conditions"]
    assert isinstance(conditions, dict)
    how = ", ".join(f"{name} {value}" for name, value in conditions.items()).replace("_", " ")
    read, cached, written = (_sum(rows, name) for name in ("prompt_tokens", "cached_tokens", "completion_tokens"))
    share = f"{100 * cached / read:.0f} %" if read else "–"
    return label, solved, f"{_sum(rows, 'requests') / len(rows):.1f}", str(read), share, str(written), how


def _cell(row: Row) -> str:
    return f"{'solved' if row['solved'] else 'no'}, {row['requests']} ({row['status']})"


def _sum(rows: Sequence[Row], name: str) -> int:
    return sum(value for row in rows if isinstance(value := row[name], int))


def _lines(rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
