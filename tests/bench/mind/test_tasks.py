"""Every task for the real model can be solved, and is not solved from the start."""

import subprocess
from pathlib import Path

import pytest

from bench.mind.real_model import TASKS
from bench.mind.tasks.task import Task, Work

SOLUTIONS = {
    "fix-bug": "sed -i 's/(len(numbers) - 1)/len(numbers)/' stats.py",
    "rename": "sed -i 's/calc/total_price/g' *.py",
    "add-function": 'echo \'def slugify(text): return text.lower().replace(" ", "-")\' >> text_tools.py',
    "extract-function": (
        "sed -i 's/width \\* height/area(width, height)/' shapes.py;"
        "echo 'def area(width, height): return width * height' >> shapes.py"
    ),
    "delete-dead-code": "sed -i '/old_total/,/return result/d' billing.py",
    "write-test": (
        "echo 'from temperature import to_fahrenheit as f' > test_temperature.py;"
        "echo 'def test_it(): assert (f(0), f(100)) == (32, 212)' >> test_temperature.py"
    ),
    "csv-to-json": (
        "python3 -c 'import csv, json; print(json.dumps(list(csv.DictReader(open(\"people.csv\")))))' > people.json"
    ),
    "two-part-report": "printf 'total: 547\\nbest: plum\\n' > report.txt",
    "find-in-logs": "grep -rh status=503 logs | grep -o 'r7f3' > answer.txt",
    "create-script": "printf '#!/bin/sh\\necho \"Hello, $1!\"\\n' > greet.sh; chmod +x greet.sh",
    "edit-config": "sed -i '0,/8080/s//9090/' app.ini",
    "count": "grep -rh TODO src | wc -l > count.txt",
}


@pytest.mark.slow
@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_check_accepts_a_solution_and_nothing_else(task: Task, tmp_path: Path) -> None:
    task.build(tmp_path)
    assert not task.check(Work(folder=tmp_path))
    task.build(tmp_path)
    subprocess.run(["bash", "-c", SOLUTIONS[task.name]], cwd=tmp_path, check=True)
    assert task.check(Work(folder=tmp_path))
