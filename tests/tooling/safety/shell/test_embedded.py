"""Commands inside the words of programs that no table describes."""

import pytest

from tests.tooling.safety.judge_harness import decision
from tooling.contract.action import Decision
from tooling.safety.shell.embedded import embedded_commands


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (("kak", "-e", "nop %sh{rm -rf src}"), ["rm -rf src"]),
        (("taskd", "--on-exit-cmd=rm -rf src"), ["rm -rf src"]),
        (("tool", "--post-hook", "python x.py --all"), ["python x.py --all"]),
        (("tool", "--title", "a fine day"), []),
        (("grep", "-e", "rm -rf src"), []),
        (("cat", "rm -rf src"), []),
    ],
)
def test_the_value_of_an_option_that_is_a_command_is_read_as_one(words: tuple[str, ...], texts: list[str]) -> None:
    assert embedded_commands(words)[0] == texts


def test_plain_words_that_are_a_command_are_read_as_one() -> None:
    assert embedded_commands(("mold", "-run", "rm", "-rf", "src")) == ([], [("rm", "-rf", "src")])
    assert embedded_commands(("ls", "rm")) == ([], [])


@pytest.mark.parametrize(
    "command",
    [
        "subl --command 'exec rm -rf src'",
        "nodemon --exec 'rm -rf src'",
        "watch -x sh -c 'rm -rf src'",
        "sh < /dev/tty",
        "gawk -f - <<< 'BEGIN{system(\"rm -rf src\")}'",
        "ps aux | awk '{print $2}' | xargs kill",
        "npm frobnicate",
    ],
)
def test_a_roundabout_command_asks(command: str) -> None:
    assert decision(command) is Decision.ASK


@pytest.mark.parametrize(
    "command",
    [
        "nodemon --exec 'npm test'",
        "npx rollup -c -w",
        "watch -n 5 'git status -s'",
        "goreleaser --version",
        "somelint src",
        "sometool validate config.yml",
        "chmod -R u+rwX,go+rX public",
        "kill $(cat server.pid)",
    ],
)
def test_everyday_work_that_looks_alike_does_not_ask(command: str) -> None:
    assert decision(command) is Decision.ALLOW
