"""Long and degenerate texts: judged in bounded time, or answered *ask* without being read."""

import pytest

from tests.tooling.safety.judge_harness import decision, judge_command
from tooling.contract.action import Decision

# Repeated parts that once took quadratic time or more.
DEGENERATE = {
    "pipes that lead nowhere": "a|" * 50_000,
    "pipes": "a|" * 50_000 + "a",
    "actions of find": "find . " + r"-exec ls {} \; " * 20_000,
    "folders": "cd a;" * 50_000,
    "substitutions": "echo $(" * 20_000 + ")" * 20_000,
    "backticks": "echo " + "`a` " * 50_000,
    "calls in program text": "python3 -c '" + "os.system(x)\n" * 20_000 + "'",
    "redirections": "ls " + "> a " * 60_000,
    "here-documents": "cat <<E\na\nE\n" * 30_000,
}


@pytest.mark.parametrize("text", DEGENERATE.values(), ids=DEGENERATE.keys())
def test_a_text_with_too_many_operators_asks_without_being_read(text: str) -> None:
    assert (judge_command(text).rule, judge_command(text).decision) == ("too-large", Decision.ASK)


@pytest.mark.parametrize(
    "text",
    [
        "git " + "-c a=b " * 40_000 + "status",
        "env " * 40_000 + "ls",
        "eval " * 40_000 + "ls",
        'bash -c "' * 40_000,
        "find . " + "-nam[e] x " * 20_000,
        "cd a;" * 700,
        "echo a" + "#" * 50_000,
    ],
)
def test_many_words_are_judged_in_linear_time(text: str) -> None:
    assert decision(text) < Decision.BLOCK


def test_a_long_file_in_a_here_document_is_data() -> None:
    body = "if (a || b) { run(`x`); }\n" * 10_000
    assert decision(f"cat > app.js <<'END'\n{body}END\n") is Decision.ALLOW
    assert decision(f"cat > app.js <<'END'\n{body}END\nrm -rf src\n") is Decision.ASK


def test_what_only_looks_like_a_here_document_counts() -> None:
    assert judge_command("echo '\ncat <<E\n'\n" + "a|" * 50_000 + "\nE\n").rule == "too-large"
