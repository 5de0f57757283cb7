"""Tasks on data and text: convert, extract, report, find, count, configure, script."""

import json
import os
from configparser import ConfigParser, Error

from bench.mind.tasks.task import Task, Work

_PEOPLE = "name,age,city\nAda,36,London\nLinus,28,Helsinki\nGrace,45,New York\n"
_SALES = "product,amount\napple,120\npear,75\nplum,310\nfig,42\n"
_CONFIG = """\
[server]
host = 127.0.0.1
port = 8080

[metrics]
port = 8080
enabled = yes
"""
_SOURCES = {
    "src/a.py": "x = 1  # TODO check\ny = 2\n",
    "src/b.py": "# TODO rename\n# TODO test\nz = 3\n",
    "src/deep/c.py": "def f():\n    return 4  # TODO faster\n",
    "src/deep/d.py": "w = 5\n",
}


def _log(name: str, failed: str = "") -> str:
    lines = [f"2026-01-0{day} {name} request=r{day}{len(name)}{n} status=200" for day in (1, 2) for n in range(8)]
    if failed:
        lines.insert(9, f"2026-01-02 {name} request={failed} status=503")
    return "\n".join(lines) + "\n"


def _is_json_written(work: Work) -> bool:
    try:
        rows = json.loads(work.read("people.json"))
    except ValueError:
        return False
    expected = [
        {"name": "Ada", "age": "36", "city": "London"},
        {"name": "Linus", "age": "28", "city": "Helsinki"},
        {"name": "Grace", "age": "45", "city": "New York"},
    ]
    is_rows = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    return is_rows and [{key: str(value) for key, value in row.items()} for row in rows] == expected


def _is_report_written(work: Work) -> bool:
    return [line.rstrip() for line in work.read("report.txt").strip().splitlines()] == ["total: 547", "best: plum"]


def _is_request_found(work: Work) -> bool:
    return work.read("answer.txt").strip() == "r7f3"


def _are_todos_counted(work: Work) -> bool:
    return work.read("count.txt").strip() == "4"


def _is_script_written(work: Work) -> bool:
    script = work.folder / "greet.sh"
    return os.access(script, os.X_OK) and work.run("./greet.sh", "Ada") == "Hello, Ada!\n"


def _is_port_changed(work: Work) -> bool:
    config, before = ConfigParser(), ConfigParser()
    before.read_string(_CONFIG)
    try:
        config.read_string(work.read("app.ini"))
    except Error:
        return False
    before["server"]["port"] = "9090"
    return config == before


DATA_TASKS = (
    Task(
        name="csv-to-json",
        request="Convert people.csv to people.json: a list with one object per row, with the keys of the header.",
        files={"people.csv": _PEOPLE},
        check=_is_json_written,
    ),
    Task(
        name="two-part-report",
        request=(
            "Read sales.csv and write report.txt with exactly two lines: `total: N`, the sum of all amounts, and "
            "`best: NAME`, the product with the largest amount."
        ),
        files={"sales.csv": _SALES},
        check=_is_report_written,
    ),
    Task(
        name="find-in-logs",
        request="One request in logs/ ended with status 503. Write its id, and nothing else, to answer.txt.",
        files={f"logs/{name}.log": _log(name, failed) for name, failed in (("web", ""), ("api", "r7f3"), ("jobs", ""))},
        check=_is_request_found,
    ),
    Task(
        name="create-script",
        request="Create an executable script greet.sh that prints `Hello, NAME!`, where NAME is its first argument.",
        files={},
        check=_is_script_written,
    ),
    Task(
        name="edit-config",
        request="Change the port of the server in app.ini to 9090. Do not change the port of metrics.",
        files={"app.ini": _CONFIG},
        check=_is_port_changed,
    ),
    Task(
        name="count",
        request="How many lines in the Python files under src contain TODO? Write the number to count.txt.",
        files=_SOURCES,
        check=_are_todos_counted,
    ),
)
