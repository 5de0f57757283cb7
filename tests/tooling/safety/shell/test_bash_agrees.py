"""Compare with real bash: the reader finds every command bash runs, or the verdict asks."""

import random
import re
import subprocess
import tempfile
from itertools import product

import pytest

from tests.tooling.safety.judge_harness import argvs, decision
from tooling.safety.shell.command import HIDDEN, UNKNOWN

# `cal` reports its words on a descriptor of its own, in one write.
_CAL = 'cal() { local l; printf -v l "\\037%s" cal "$@"; printf "%s\\036" "$l" >&9; }; PATH=/nonexistent; set -f\n'
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
NAMES = ("cal", "c''al", 'c"a"l', "c\\al", "$'\\x63al'", "$(echo cal)", "`echo cal`", "$z", "${z}", "ca\\\nl", "c$1al")
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
echo "${x:-'}"; cal; echo "'}"
echo $'a\'; cal; echo '
echo a#"b; cal; echo "
echo $(echo ")"); cal
echo $(case x in x) echo;; esac); cal
[[ x =~ "(" ]]; cal
[[ a < b ]]; cal
echo }# ; cal
a=()#; cal
cal ``"x"
<<< ]]\; cal
true && cal >/dev/null -rf /
! cal 2>&1 -rf /
cal x - 2>/dev/null
>f cal
x=1 cal
coproc X { cal; }; wait
time { cal; }
! { cal; }
f() if true; then cal; fi; f
for x; do :; done; cal
echo "${x[$(cal)]}"
declare -n r=x; x=cal; $r
read x <<< cal; $x
printf -v x cal; $x
set -- cal; "$@"
x=y; y=cal; ${!x}
while read l; do $l; done <<< cal
source /dev/stdin <<< cal
a=([0]=x [1]="$(cal)")
echo $[`cal`+1]
((cal) | cat)
echo $((cal) | cat)
""".strip().splitlines()
LONG = (
    "cat <<E\n`cal`\nE\n",
    'cat <<E"O"F\nEOF\ncal\nE"O"F\n',
    "cat <<EOF\n  EOF\ncat <<'ZZ'\nEOF\ncal\nZZ\n",
    "cat <<A;cal\nA\n",
    "cat <<A | cal\nA\n",
    "cat <<A && cal\nA\n",
    'echo a # "\ncal # "\n',
    "# comment \\\ncal\n",
    "let x=1<<2\ncal\n2\n",
    "case x in\nx) cal\n;;\nesac",
)


def run_in_bash(text: str) -> list[tuple[str, ...]]:
    """Return the words of every `cal` that bash runs."""
    script = f"exec 9>&1 1>/dev/null; {_CAL}{text}\n"
    # Some of the texts write files.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["bash", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False, cwd=folder
        )
    return [tuple(line.split("\x1f")[1:]) for line in done.stdout.decode().split("\x1e") if line]


def is_found(words: tuple[str, ...], found: list[tuple[str, ...]]) -> bool:
    line = "\0".join(words)
    patterns = (re.sub(f"[{UNKNOWN}{HIDDEN}]", ".*", re.escape("\0".join(command))) for command in found)
    return any(re.fullmatch(pattern, line, re.DOTALL) for pattern in patterns)


def agrees(text: str) -> bool:
    if decision(text):
        return True
    found = argvs(text)
    return all(is_found(words, found) for words in run_in_bash(text))


def random_texts(count: int, seed: int) -> list[str]:
    dice = random.Random(seed)
    texts = []
    for _ in range(count):
        text = " ".join([dice.choice(NAMES), *dice.sample(WORDS, dice.randrange(3))])
        for _ in range(dice.randrange(4)):
            text = dice.choice(LAYERS).format(text)
        texts.append(f"z=cal; u=; {text}")
    return texts


def test_bash_runs_no_command_that_the_reader_missed() -> None:
    assert [text for text in random_texts(250, seed=7) if not agrees(text)] == []


def test_every_pair_of_nested_statements_is_read() -> None:
    pairs = [outer.format(inner.format("cal a")) for outer, inner in product(LAYERS, LAYERS[1:8])]
    assert [text for text in pairs if not agrees(text)] == []


@pytest.mark.parametrize("text", [*ODD, *LONG])
def test_where_grammar_and_bash_differ_the_command_is_found_or_needs_approval(text: str) -> None:
    assert agrees(text)
