"""Real bash as the witness: what it runs, the reader has found, or the verdict asks."""

import random
import re
import subprocess
import tempfile
from itertools import product

import pytest

from tests.safety.judging import argvs, decision
from tooling.safety.shell_command import HIDDEN, HOLE

# `zap` tells through a descriptor of its own that it ran, and with which words, in one write.
_ZAP = 'zap() { local l; printf -v l "\\037%s" zap "$@"; printf "%s\\036" "$l" >&9; }; PATH=/nonexistent; set -f\n'
LAYERS = (
    *("{}", "( {} )", "{{ {}; }}", "! {}", "true && {}", "false || {}", "{} | cat", "{} & wait", "time {}"),
    *("if true; then {}; fi", "for x in a b; do {}; done", "for ((i=0;i<1;i++)); do {}; done"),
    *("while {}; false; do :; done", "until {}; true; do :; done", "case a in (a|b) {};; *) :;; esac"),
    *(
        "f() {{ {}; }}; f",
        "function g {{ {}; }}; g a",
        'echo "$( {} )"',
        "echo $( {} )",
        "x=$( {} )",
        ": ${{y:-$( {} )}}",
    ),
    *("cat <<E\na $( {} ) b\nE\n", "[[ -n $( {} ) ]]", "arr=(a $( {} ))", "echo $(( $( {} ) + 1 ))", "# it's\n{}"),
    *("echo a\\\n b; {}", "{} > /dev/null", "{} 2>&1", "A=1; {}"),
)
NAMES = ("zap", "z''ap", 'z"a"p', "z\\ap", "$'\\x7aap'", "$(echo zap)", "`echo zap`", "$z", "${z}", "za\\\np", "z$1ap")
WORDS = (
    "-r",
    "'a b'",
    "a\\ b",
    "$u",
    '"$u"',
    "{a,b}",
    "a#b",
    "'#'",
    "\\>",
    "!",
    "a=b",
    "$'t\\tt'",
    "${u:-k}",
    "-",
    "$((1))",
)
ODD = r"""
echo "${x:-'}"; zap; echo "'}"
echo $'a\'; zap; echo '
echo a#"b; zap; echo "
echo $(echo ")"); zap
echo $(case x in x) echo;; esac); zap
[[ x =~ "(" ]]; zap
[[ a < b ]]; zap
echo }# ; zap
a=()#; zap
zap ``"x"
<<< ]]\; zap
true && zap >/dev/null -rf /
! zap 2>&1 -rf /
zap x - 2>/dev/null
>f zap
x=1 zap
coproc X { zap; }; wait
time { zap; }
! { zap; }
f() if true; then zap; fi; f
for x; do :; done; zap
echo "${x[$(zap)]}"
declare -n r=x; x=zap; $r
read x <<< zap; $x
printf -v x zap; $x
set -- zap; "$@"
x=y; y=zap; ${!x}
while read l; do $l; done <<< zap
source /dev/stdin <<< zap
a=([0]=x [1]="$(zap)")
echo $[`zap`+1]
((zap) | cat)
echo $((zap) | cat)
""".strip().splitlines()
LONG = (
    "cat <<E\n`zap`\nE\n",
    'cat <<E"O"F\nEOF\nzap\nE"O"F\n',
    "cat <<EOF\n  EOF\ncat <<'ZZ'\nEOF\nzap\nZZ\n",
    "cat <<A;zap\nA\n",
    "cat <<A | zap\nA\n",
    "cat <<A && zap\nA\n",
    'echo a # "\nzap # "\n',
    "# comment \\\nzap\n",
    "let x=1<<2\nzap\n2\n",
    "case x in\nx) zap\n;;\nesac",
)


def ran(text: str) -> list[tuple[str, ...]]:
    """Return the words of every `zap` that bash really runs."""
    script = f"exec 9>&1 1>/dev/null; {_ZAP}{text}\n"
    # Some of the texts write files; they must land nowhere that matters.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["bash", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False, cwd=folder
        )
    return [tuple(line.split("\x1f")[1:]) for line in done.stdout.decode().split("\x1e") if line]


def is_found(words: tuple[str, ...], found: list[tuple[str, ...]]) -> bool:
    line = "\0".join(words)
    patterns = (re.sub(f"[{HOLE}{HIDDEN}]", ".*", re.escape("\0".join(command))) for command in found)
    return any(re.fullmatch(pattern, line, re.DOTALL) for pattern in patterns)


def agrees(text: str) -> bool:
    if decision(text):
        return True
    found = argvs(text)
    return all(is_found(words, found) for words in ran(text))


def texts(count: int, seed: int) -> list[str]:
    dice = random.Random(seed)
    made = []
    for _ in range(count):
        text = " ".join([dice.choice(NAMES), *dice.sample(WORDS, dice.randrange(3))])
        for _ in range(dice.randrange(4)):
            text = dice.choice(LAYERS).format(text)
        made.append(f"z=zap; u=; {text}")
    return made


def test_bash_runs_nothing_that_was_not_found() -> None:
    assert [text for text in texts(250, seed=7) if not agrees(text)] == []


def test_every_pair_of_layers_is_followed() -> None:
    pairs = [outer.format(inner.format("zap a")) for outer, inner in product(LAYERS, LAYERS[1:8])]
    assert [text for text in pairs if not agrees(text)] == []


@pytest.mark.parametrize("text", [*ODD, *LONG])
def test_where_grammar_and_shell_differ_the_verdict_asks_or_the_command_is_found(text: str) -> None:
    assert agrees(text)
