"""Commands that bash runs but the grammar takes for plain text need approval."""

import pytest

from tests.tooling.safety.judge_harness import decision
from tooling.contract.action import Decision

HIDDEN_COMMANDS = (
    "echo hi\n\\rm -rf ~",
    "git add x\n\\git push",
    "echo hi # c\n\\rm -rf ~",
    "echo hi\n\n\\rm -rf ~",
    "echo =~\nrm -rf ~",
    "grep =~\ngit push",
    "test a =~\nrm -rf ~",
    "echo ==\nrm -rf ~",
    "echo a [[ b =~ \nrm -rf ~",
    "echo [[ =~; rm -rf ~; ]]",
    "echo bash [[ a =~ ; rm -rf ~; ]]",
    "echo [[ a =~ `rm -rf ~` ]",
    "echo [[ a =~ $(rm -rf ~)}",
    "echo >$\nrm -rf ~",
    "echo ``\nrm -rf ~",
    "echo ` `\nrm -rf ~",
    'echo "${x:=`rm -rf ~`}"',
    'echo "${x:-`rm -rf ~`}"',
    'echo "${x/a/`rm -rf ~`}"',
    "echo ${x#$(rm -rf ~)}",
    'echo "${x%`git push`}"',
    "echo ${x^$(rm -rf ~)}",
    ": ${x:-<(rm -rf ~)}",
    ": ${x:->(rm -rf ~)}",
    "[[ x =~ <(rm -rf ~) ]]",
    'x=$"$(rm -rf ~)"',
    'echo > $"$(rm -rf ~)"',
    'cat <<< $"$(rm -rf ~)"',
    'for i in $"$(rm -rf ~)"; do :; done',
    "for ((i=`rm -rf ~`;;)); do :; done",
    "test -v 'x[$(rm -rf ~)]'",
    "let 'x[$(rm -rf ~)]=1'",
    "printf -v 'x[$(rm -rf ~)]' 1",
    "[[ 'x[$(rm -rf ~)]' -eq 1 ]]",
    "x='a[$(rm -rf ~)]'; echo $((x))",
    "x='$(rm -rf ~)'; echo \"${x@P}\"",
)
PLAIN = (
    "cat > a.txt <<'END'\ncosts $(nothing) `here`\n\\rm\nEND",
    "python3 - <<'EOF'\nx = {'a': 1}\nprint(x)\nEOF",
    "echo 'a `b` $(c)'; echo done",
    "git commit -m 'use $(cmd) and `ticks`'",
    "if [[ $x =~ ^(a|b)[0-9]+$ ]]; then\n  echo yes\nfi",
    "for i in 1 2 3; do\n  echo $i\ndone",
    "grep -n 'a <(b)' src/x.py",
    'echo "a <(b) c"',
    "echo one \\\n  two \\\n  three",
    "cd src &&\n  ls |\n  head -3",
    "x=(a b\n c d)\necho ${x[1]}",
)


@pytest.mark.parametrize("text", HIDDEN_COMMANDS)
def test_a_command_that_the_grammar_misses_needs_approval(text: str) -> None:
    assert decision(text) >= Decision.ASK


@pytest.mark.parametrize("text", PLAIN)
def test_text_that_only_looks_like_a_command_is_allowed(text: str) -> None:
    assert decision(text) is Decision.ALLOW


@pytest.mark.parametrize(
    ("text", "minimum"),
    [
        ("cd " + "d/" * 3000 + "; rm -rf ~", Decision.BLOCK),
        ("cat " + "../" * 5000 + "etc/passwd", Decision.ASK),
        ("x=aa;" + "x=$x$x;" * 40 + "rm -rf $x", Decision.ASK),
        ("x=aaaaaaaaaa;" + "x=${x//a/aaaaaaaaaa};" * 12 + "rm -rf $x", Decision.ASK),
    ],
)
def test_huge_values_do_not_lower_the_verdict(text: str, minimum: Decision) -> None:
    assert decision(text) >= minimum
