"""Builtins that run text are read like `eval`."""

import pytest

from tests.tooling.safety.judge_harness import argvs, decision
from tooling.contract.action import Decision


@pytest.mark.parametrize(
    "text",
    [
        *("history -s 'rm -rf src'; fc -s", "fc -s", "fc -e ./editor", "fc -e - rm", "history -r notes; fc -s"),
        *("bind -x '\"\\C-x\": rm -rf src'", "bind -f ./keys", "trap 'rm -rf src' EXIT", "coproc rm -rf src"),
        *(
            "PROMPT_COMMAND='rm -rf src'",
            "PS4='$(rm -rf src)'; set -x",
            "PS0='$(rm -rf src)'",
            "complete -C 'rm -rf src' x",
        ),
        *("mapfile -C 'rm -rf src' -c 1 < a", "enable -f ./x.so x", "enable -n test", "BASH_ENV=./x bash -c ls"),
        *("command_not_found_handle() { rm -rf src; }", "declare -n p=PATH; p=/tmp/x; ls", "printf -v BASH_ENV %s ./x"),
        *(
            "test -v 'a[$(rm -rf src)]'",
            "(( a[$(rm -rf src)] ))",
            "alias x='rm -rf'; x src",
            "printf '\\x69\\x64' | sh",
        ),
    ],
)
def test_a_builtin_that_runs_text_asks(text: str) -> None:
    assert decision(text) >= Decision.ASK


@pytest.mark.parametrize(
    "text", ["fc -l", "history 10", "bind -p", "alias ll='ls -la'; ll src", "trap - EXIT", "hash -r"]
)
def test_builtins_that_only_show_or_name_something_are_allowed(text: str) -> None:
    assert decision(text) is Decision.ALLOW


def test_an_alias_is_read_with_the_words_after_it() -> None:
    assert ("rm", "-rf", "src") in argvs("alias x='rm -rf'; x src")
    assert ("rm", "-rf", "src") in argvs("history -s 'rm -rf src'; fc -s")
