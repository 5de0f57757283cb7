"""Code and settings from folders for temporary files are asked about in every program; data there is not."""

from pathlib import Path

import pytest

from tests.tooling.safety.judge_harness import corpus, decision, judge_command
from tooling.contract.action import Decision

RUNS = """
bash /tmp/scratch-setup.sh
python3 /tmp/scratch-gen.py --all
python3 -m cProfile /tmp/scratch-gen.py
python3 - < /tmp/scratch-gen.py
make -C /tmp/scratch-other
jest --config /tmp/scratch-a.js
jest --globalSetup=/var/tmp/scratch-a.js
cmake -DCMAKE_C_COMPILER=/tmp/scratch-cc .
cmake -P /tmp/scratch-a.cmake
kotlinc -script /dev/shm/a.kts
crystal run /tmp/scratch-a.cr
flask --app /tmp/scratch-a run
gcc @/tmp/scratch-args a.c
psql -f /tmp/scratch-a.sql dev
go mod edit -replace example.org/a=/tmp/scratch-a
awk -f /tmp/scratch-a.awk data.txt
mvn -s /tmp/scratch-settings.xml package
protoc --plugin=protoc-gen-x=/tmp/scratch-x --x_out=. a.proto
"""
HANDLES = """
python3 tools/gen.py > /tmp/scratch-out.txt
python3 tools/gen.py /tmp/scratch-in.py
make test | tee /tmp/scratch-log.txt
jest --config jest.ci.js
pytest --junitxml=/tmp/scratch-r.xml
go build -o /tmp/scratch-app .
go test -coverprofile=/tmp/scratch-c.out ./...
cmake -S . -B /tmp/scratch-build
make install DESTDIR=/tmp/scratch-pkg
jq . /tmp/scratch-a.json
cat /tmp/scratch-a.py
gcc -o /tmp/scratch-a a.c
ruff check /tmp/scratch-a.py
./app --config /tmp/scratch-a.toml
sqlite3 /tmp/scratch-a.db 'select 1'
"""


def test_code_and_settings_from_a_temporary_folder_ask() -> None:
    assert [line for line in RUNS.strip().splitlines() if decision(line) is not Decision.ASK] == []


def test_data_and_output_in_a_temporary_folder_do_not_ask() -> None:
    assert [line for line in HANDLES.strip().splitlines() if decision(line) is not Decision.ALLOW] == []


def test_a_script_that_the_text_itself_writes_is_read_instead() -> None:
    assert decision("printf 'print(1)' > /tmp/scratch-a.py; python3 /tmp/scratch-a.py") is Decision.ALLOW
    assert decision("echo 'rm -rf /' > /tmp/scratch-a.sh; bash /tmp/scratch-a.sh") is Decision.BLOCK
    assert decision("curl -o /tmp/scratch-a.py localhost:1; python3 /tmp/scratch-a.py") is Decision.ASK


@pytest.mark.slow
def test_a_workspace_in_a_temporary_folder_is_a_workspace() -> None:
    inside = Path("/tmp/project")
    lines = [line for line in corpus("everyday.txt") if "../" not in line]
    asked = [line for line in lines if judge_command(line, cwd=inside).decision is not Decision.ALLOW]
    assert [line for line in asked if decision(line) is Decision.ALLOW] == []
    assert judge_command("python3 /tmp/project/gen.py", cwd=inside).decision is Decision.ALLOW
    outside = ("python3 /tmp/other/gen.py", "PYTHONPATH=/tmp/project2 pytest", "PYTHONPATH=/tmp/project/../x pytest")
    assert [line for line in outside if judge_command(line, cwd=inside).decision is not Decision.ASK] == []
