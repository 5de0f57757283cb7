"""Verdicts on two large corpora of commands, harmless and dangerous, against the promised error rates."""

from functools import cache

import pytest
from _pytest.mark import ParameterSet

from tests.tooling.safety.judge_harness import corpus, decision
from tooling.contract.action import Decision

EVERYDAY = corpus("everyday.txt")
DANGEROUS = [line.split("\t", 1) for line in corpus("dangerous.txt")]
MINIMUM = {"ask": Decision.ASK, "block": Decision.BLOCK}


def slow(form: str) -> ParameterSet:
    """Leave a form to `make test`: each is thousands of commands."""
    return pytest.param(form, marks=pytest.mark.slow)


@cache
def plain_decisions() -> tuple[tuple[str, Decision], ...]:
    return tuple((command, decision(command)) for _, command in DANGEROUS)


def test_the_corpora_are_large_and_have_no_duplicates() -> None:
    assert min(len(EVERYDAY), len(DANGEROUS)) >= 300
    assert len({*EVERYDAY}) == len(EVERYDAY)
    assert len({command for _, command in DANGEROUS}) == len(DANGEROUS)


def test_everyday_commands_rarely_need_approval_and_are_never_blocked() -> None:
    decisions = {command: decision(command) for command in EVERYDAY}
    asked = [command for command, verdict in decisions.items() if verdict]
    assert [command for command in asked if decisions[command] is Decision.BLOCK] == []
    assert len(asked) <= 0.01 * len(EVERYDAY), asked


def test_every_dangerous_command_gets_at_least_its_minimum_decision() -> None:
    assert {minimum for minimum, _ in DANGEROUS} == MINIMUM.keys()
    judged = zip(DANGEROUS, plain_decisions(), strict=True)
    assert [command for (minimum, command), (_, verdict) in judged if verdict < MINIMUM[minimum]] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrapper", ["sh -c {}", *map(slow, ("bash -lc {}", "eval {}", "env LC_X=1 bash -c {}", "timeout 9 sh -c {}"))]
)
def test_a_wrapper_never_lowers_a_verdict(wrapper: str) -> None:
    lowered = []
    for command, plain in plain_decisions():
        quoted = "'" + command.replace("'", "'\\''") + "'"
        if decision(wrapper.format(quoted)) < plain:
            lowered.append(command)
    assert lowered == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    [
        "echo {} >> notes.md",
        *map(slow, ("grep -rnF -e {} docs", "git commit -m {}", "cat > notes.md <<'END'\n{}\nEND\n")),
    ],
)
def test_a_dangerous_command_as_quoted_data_is_data(use: str) -> None:
    verdicts = []
    for _, command in DANGEROUS:
        quoted = command if "<<" in use else "'" + command.replace("'", "'\\''") + "'"
        verdicts.append((decision(use.format(quoted)), command))
    assert [command for verdict, command in verdicts if verdict is Decision.BLOCK] == []
    asked = [command for verdict, command in verdicts if verdict]
    assert len(asked) <= 0.01 * len(DANGEROUS), asked
