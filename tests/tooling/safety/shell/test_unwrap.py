"""Commands inside commands: wrappers, interpreters and options that run code."""

import pytest

from tests.tooling.safety.judge_harness import argvs, decision
from tooling.contract.action import Decision

INNER = "rm -rf /"
WRAPPED = r"""
env X=1 -u Y {}
sudo -u root -n {}
doas {}
nice -n 5 {}
nice -5 {}
ionice -c 2 -n 7 {}
timeout -k 5 --signal=INT 10s {}
nohup {}
setsid --fork {}
stdbuf -o0 -eL {}
command -p {}
builtin {}
exec -a name {}
time -p {}
busybox {}
toybox {}
strace -f -o out -e trace=file {}
chroot /mnt {}
unshare --fork --pid {}
taskset -c 0 {}
chrt -f 10 {}
flock -w 3 lock {}
xvfb-run -a {}
valgrind --tool=none {}
uv run --with x {}
poetry run {}
bundle exec {}
direnv exec . {}
npx -c '{}'
script -q -c '{}' log
flock lock -c '{}'
su -c '{}' bob
watch -n 2 '{}'
parallel ::: '{}'
hyperfine '{}' 'ls'
bash -c '{}'
bash -euo pipefail -c '{}'
bash --noprofile --norc -c '{}' name arg
sh -c -x '{}'
zsh -ic '{}'
eval '{}'
trap '{}' INT
find . -exec {} \;
find . -ok {} +
find . -name x -execdir sh -c '{}' \;
git submodule foreach '{}'
git -c alias.x='!{}' x
git rebase -x '{}' main
git bisect run {}
git bisect run sh -c '{}'
fd -e py -x sh -c '{}'
fd -Hx sh -c '{}'
go test -exec '{}' ./...
man -P '{}' ls
GIT_PAGER='{}' git log
exec -a ls sh -c '{}'
ipython -c 'import os; os.system("{}")'
python3 -m pdb -c 'import os; os.system("{}")' a.py
python3 -m timeit 'import os; os.system("{}")'
mapfile -C '{}' -c 1 lines
hyperfine --prepare '{}' ls
nodemon --exec '{}'
pee '{}' cat
tox exec -- {}
coverage run -m pytest; nix develop -c {}
perl -lnE'system("{}")' f
tar -cf a.tar b --to-command='{}'
split --filter='{}' a
python3 -c 'import os; os.system("{}")'
python3 -c "import subprocess as s; subprocess.run('{}', shell=True)"
perl -e 'system("{}")'
ruby -e 'system("{}")'
ruby -e '`{}`'
node -e 'require("child_process").execSync("{}")'
php -r 'passthru("{}");'
lua -e "os.execute('{}')"
awk 'BEGIN {{ system("{}") }}'
awk '{{ print | "{}" }}' f
sh <<< '{}'
echo '{}' | bash
echo '{}' | sudo sh -s
printf '%s\n' '{}' > s.sh && bash ./s.sh
printf 'all:\n\t{}\n' > Makefile; make
echo 'import os; os.system("{}")' | python3 -
env -S '{}'
/lib64/ld-linux-x86-64.so.2 {}
""".strip().splitlines()


@pytest.mark.parametrize("wrapper", WRAPPED)
def test_a_wrapped_command_is_found(wrapper: str) -> None:
    assert ("rm", "-rf", "/") in argvs(wrapper.format(INNER).replace("{{", "{").replace("}}", "}"))
    assert decision(wrapper.format(INNER).replace("{{", "{").replace("}}", "}")) is Decision.BLOCK


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("find . -name '*.o' -delete", ("rm", "-r", "./**/*.o")),
        ("find a b -exec rm {} +", ("rm", "a/**/*", "b/**/*")),
        ("find . -name x -prune -o -type f -exec rm {} +", ("rm", "./**/*")),
        ("find . -name x | xargs rm", ("rm", "./**/x")),
        ("echo a b | xargs -n1 rm -f", ("rm", "-f", "a", "b")),
        ("echo a | xargs -I{} mv {} {}.bak", ("mv", "a", "a.bak")),
        ("fd -e o -x rm", ("rm", "./**/*.o")),
        ("python3 -m pip install x", ("pip", "install", "x")),
        ("git -C a --no-pager push", ("git", "push")),
        ("sh -c 'rm \"$1\"' _ a", ("rm", "a")),
    ],
)
def test_generated_arguments_are_filled_in(text: str, inner: tuple[str, ...]) -> None:
    assert inner in argvs(text)


def test_eight_wrappers_are_read_and_more_need_approval() -> None:
    assert decision("nice " * 7 + "rm -rf /") is Decision.BLOCK
    assert decision("nice " * 20 + "ls") is Decision.ASK


@pytest.mark.parametrize(
    "text",
    [
        "python3 -c 'import json; print(json.loads(\"{}\"))'",
        'python3 -c \'import subprocess; print(subprocess.run(["git", "status"]))\'',
        "node -e 'console.log(/x/.exec(\"axb\"))'",
        "perl -ne 'print if /rm -rf/' log",
        "awk '$1 == \"rm\" {n++} END {print n}' log",
        "sed -n '/start/,/end/p;s/a/e/g' f",
        "sed -e 'y/abc/def/' -e '$!d' f",
        "jq '.env | keys' f.json",
        "sqlite3 a.db 'select * from t where x = 1'",
    ],
)
def test_harmless_program_text_is_allowed(text: str) -> None:
    assert decision(text) is Decision.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "find . -delet[e]",
        "find . -exe[c] sh -c id ';'",
        "find . -name '*.txt' -exec sh {} ';'",
        "find . | xargs -n1 bash",
        "nice /bin/sh",
        "exec -a name bash",
        "declare -n x=BASH_ENV; x=./a.sh; bash -c true",
        "printf -v BASH_ENV %s ./a.sh; export BASH_ENV; bash -c true",
        ": ${BASH_ENV:=./a.sh}",
        "export 'BASH_ENV=./a.sh'",
        "man -C a.conf ls",
        "GIT_PAGER=./a.sh git log",
        "tar --to-comm=./a.sh -xf a.tar",
        "touch -- '--checkpoint-action=exec=sh a.sh'",
    ],
)
def test_a_program_that_is_only_known_at_run_time_asks(command: str) -> None:
    assert decision(command) is not Decision.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "find . -name '*.sh' -exec bash -n {} ';'",
        "git bisect run pytest -x",
        "GIT_PAGER=cat git log",
        "GIT_SEQUENCE_EDITOR=: git rebase -i HEAD~2",
        "awk -F'[,]' '{print $1}' data.csv",
        "python3 -m pdb -c continue app.py",
        "gdb -batch -ex run -ex bt ./prog",
        "PY=$(command -v python3 || command -v python); $PY -m pytest",
        "bash --version",
    ],
)
def test_everyday_use_of_programs_that_run_others_is_allowed(command: str) -> None:
    assert decision(command) is Decision.ALLOW
