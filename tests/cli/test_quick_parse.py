"""The quick parser of `agent run` reads every line as typer does, or leaves it to typer."""

import random
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import typer

from cli.commands import run
from cli.options import Option, declared, option
from cli.quick_parse import parse_quickly
from cli.typer_program import build_application

LINES = 500
OPTIONS = [mark for hint in run.command.__annotations__.values() if isinstance(mark := declared(hint), Option)]
VALUES = ("x", "1", "-1", "2.5", "1_0", "nan", "json", "stream-json", "a b", "-", "--quiet", "k=v", "/tmp/f", "é", "")


def by_typer(words: list[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, object] | None:
    """Return what typer passes to the command, None if it refuses the line."""
    given: list[dict[str, object]] = []

    def take(values: dict[str, object]) -> int:
        given.append(values)
        return 0

    monkeypatch.setattr(run, "_run", take)
    try:
        typer.main.get_command(build_application("run"))(["run", *words], prog_name="agent")
    except SystemExit:
        pass
    return given[0] if given else None


def random_line(dice: random.Random) -> list[str]:
    words: list[str] = []
    for _ in range(dice.randrange(7)):
        match dice.randrange(8):
            case 0:
                words.append(dice.choice(VALUES))
            case 1:
                words.append(dice.choice(("--", "-qc", "-fx", "--bogus", "--quie", "-C", "--help", "task")))
            case 2:
                words.append(f"{dice.choice(dice.choice(OPTIONS).names)}={dice.choice(VALUES)}")
            case 3 | 4:
                words.append(dice.choice(dice.choice(OPTIONS).names))
            case _:
                words += [dice.choice(dice.choice(OPTIONS).names), dice.choice(VALUES)]
    return words


def test_every_line_is_read_as_typer_reads_it_or_left_to_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    dice = random.Random(7)
    read = 0
    for _ in range(LINES):
        words = random_line(dice)
        quick = parse_quickly(run.command, words)
        if quick is not None:
            read += 1
            assert quick == by_typer(words, monkeypatch), words
    assert read > LINES // 10


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (["fix it"], {"prompt": "fix it"}),
        (["--model", "openai/x", "fix it", "-q"], {"model": "openai/x", "prompt": "fix it", "quiet": True}),
        (["--timeout=2.5", "-f", "a", "-f", "b"], {"timeout": 2.5, "files": [Path("a"), Path("b")]}),
        (["--max-turns", "3", "--", "--not-a-flag"], {"max_turns": 3, "prompt": "--not-a-flag"}),
        (["-"], {"prompt": "-"}),
        (["--output-format", "json"], {"output_format": "json"}),
    ],
)
def test_the_usual_lines_are_read_quickly(words: list[str], changed: dict[str, object]) -> None:
    nothing = parse_quickly(run.command, [])
    assert nothing is not None
    assert parse_quickly(run.command, words) == {**nothing, **changed}


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["a", "b"], ["--modle", "x"], ["--model"], ["--timeout", "soon"], ["-qc"]]
)
def test_help_mistakes_and_rare_notations_are_left_to_typer(words: list[str]) -> None:
    assert parse_quickly(run.command, words) is None


def test_a_declaration_keeps_its_names_and_its_help() -> None:
    mark = option("-x", "--extra", metavar="N", help="More.")
    assert (mark.names, mark.metavar, mark.help) == (("-x", "--extra"), "N", "More.")
    assert declared(int) is None
    assert get_args(run.command.__annotations__["model"])


def test_a_run_does_not_load_typer() -> None:
    program = (
        "import sys; sys.argv = ['agent', 'run', '--plan', '/nowhere.toml', '-q']; import cli.main\n"
        "import cli.exit\n"
        "def end(code):\n"
        "    assert not {'typer', 'click', 'rich', 'httpx'} & set(sys.modules), 'heavy'\n"
        "    raise SystemExit(code)\n"
        "cli.exit.exit_process = end\n"
        "cli.main.main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "heavy" not in ended.stderr
    assert ended.returncode == 42, ended.stderr
