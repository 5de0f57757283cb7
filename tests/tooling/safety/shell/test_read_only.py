"""Commands that only read, the only ones that run in plan mode."""

from pathlib import Path

import pytest

from tests.tooling.safety.judge_harness import judge_command
from tooling.safety.shell.read_only import only_reads

READS = """
ls -la src
cat a.py b.py
cd src && ls
cat a.py | head -20 | wc -l
grep -rn "def main" . --include=*.py
rg -n TODO src
find . -name '*.py' -not -path './.venv/*'
find . -type f 2>/dev/null | sort | uniq -c | sort -rn
sed -n '10,40p' a.py
sed -n '1p;20,$p' a.py
for f in *.md; do head -3 "$f"; done
git log --oneline -5
git --no-pager diff HEAD~1
git status --short
git branch -a
git remote -v
git grep -n "x" -- src
ls $(git ls-files)
python3 --version
[ -f setup.py ] && cat setup.py
/usr/bin/wc -l a.py
ls > /dev/null 2>&1
cat <<< "text"
"""
CHANGES = """
rm a.py
echo x > a.py
cat a.py >> b.py
cat a.py | tee b.py
python3 script.py
make test
npm test
find . -name '*.pyc' -delete
find . -exec rm {} +
find . -fprintf out %p
fd -e pyc -x rm
sort -o a.txt a.txt
sort -uo a.txt a.txt
sort --outp=a.txt a.txt
uniq a.txt b.txt
xxd a b
tree -o out
sed -i 's/a/b/' a.py
sed -n '1w out' a.py
sed -ni 1p a.py
sed 's/a/b/e' a.py
sed -e '1p' -e '2w out' a.py
awk '{print > "out"}' a.py
yq -i .a=1 a.yml
rg --pre ./evil x
git diff --output=x
git grep -O./evil x
git -c core.pager=./evil log
git branch new
git branch -D old
git tag v1
git reflog expire --all
git commit -am x
git checkout .
./cat a.py
bin/ls
PAGER=./evil git log
LD_PRELOAD=./evil.so ls
X=-delete; find . $X
find . $(cat options)
sort $(echo -o) a
cat() { rm a; }; cat
bash -c 'ls'
xargs rm
ls | xargs cat
eval ls
$(echo rm) a
date -s 2020-01-01
hostname evil
ls &> out
ls >| out
cat 'unclosed
"""


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


@pytest.mark.parametrize("command", lines(READS))
def test_a_command_that_looks_around_only_reads(command: str) -> None:
    assert only_reads(command, Path("/srv/project"))


def test_the_verdict_tells_what_only_reads() -> None:
    commands = ["ls -la src", "cat a.py | head -20", "true", "rm a.py", "echo a > b", "cat /etc/shadow", "make"]
    assert [judge_command(command).only_reads for command in commands] == [True] * 3 + [False] * 4


@pytest.mark.parametrize("command", [*lines(CHANGES), "", "ls\x00", "ls\u202e"])
def test_a_command_that_may_change_something_does_not(command: str) -> None:
    assert not only_reads(command, Path("/srv/project"))
