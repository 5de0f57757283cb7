"""Wrong usage: a flag's value that is not allowed, empty, or contradicts another flag ends with 2 and says so."""

import pytest

from tests.cli.terminal_user import User
from tests.house.source_tree import ROOT

pytestmark = pytest.mark.slow
HELLO = f"script:{ROOT}/examples/hello.jsonl"


def refusal(user: User, *words: str) -> str:
    """Return what a command line is refused with, before anything is done."""
    ended = user.agent(*words)
    assert (ended.exit_code, ended.stdout) == (2, ""), ended
    assert not list(user.data.glob("sessions/*"))
    return ended.stderr


@pytest.mark.parametrize(
    ("flag", "value", "allowed"),
    [
        ("--timeout", "-1", "more than 0"),
        ("--timeout", "soon", "is not a valid float"),
        ("--backend", "bogus", "sandbox, host"),
        ("--output-format", "bogus", "'text', 'json', 'stream-json'"),
        ("--concurrency", "0", "at least 1"),
        ("--concurrency", "many", "is not a valid int"),
        ("--max-steps", "0", "at least 1"),
        ("--max-turns", "-3", "at least 1"),
        ("--max-tokens", "0", "at least 1"),
        ("--max-budget-usd", "0", "more than 0"),
        ("--max-budget-usd", "nan", "a number"),
        ("--planning", "bogus", "auto, always, never"),
        ("--replan", "bogus", "surprise, always, never"),
        ("--reasoning", "bogus", "off, low, medium, high"),
        ("--approval-mode", "bogus", "ask, auto-edit, never, yolo, plan"),
        ("--on-approval", "bogus", "deny, defer, fail"),
        ("--allow-net", "http://x", "write a name such as example.org"),
        ("--profile", "bogus", "known are default, reviewer, planner, developer"),
        ("--set", "bogus", "key=value"),
        ("--set", "modle=x", "did you mean model?"),
        ("--set", "timeout_s=-1", "more than 0"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_what_is(user: User, flag: str, value: str, allowed: str) -> None:
    said = refusal(user, "run", "x", "--model", HELLO, flag, value)
    assert flag in said and allowed in said
    assert value.partition("=")[0] in said


@pytest.mark.parametrize(
    "words",
    [
        ("run", "x", "-C", ""),
        ("run", "x", "--cd="),
        ("run", "x", "--session", ""),
        ("run", "x", "--session", " "),
        ("run", "x", "--allow", ""),
        ("run", "x", "--deny", "rm", "--deny", ""),
        ("run", "x", "--allow-net", ""),
        ("run", "x", "--model", ""),
        ("run", "x", "-o", ""),
        ("run", "x", "-f", ""),
        ("run", "-r", "", "x"),
        ("plan", "x", "--save", ""),
        ("plan", "x", "--plan="),
        ("resume", "--model", ""),
        ("exec", "-C", "", "--", "ls"),
        ("check", "-C", "", "ls"),
        ("tools", "call", "read_file", "-C", ""),
        ("sessions", "list", "--limit", ""),
        ("-C", ""),
        ("--model", ""),
        ("-r", ""),
    ],
    ids=" ".join,
)
def test_an_empty_value_is_refused(user: User, words: tuple[str, ...]) -> None:
    flag = next(word for word in reversed(words) if word.startswith("-") and word != "--").rstrip("=")
    assert refusal(user, *words) == f"error: {flag}: the value is empty\nhint: give a value, or leave {flag} out\n"


def test_the_empty_name_of_a_run_is_refused(user: User) -> None:
    assert "the id of the run is empty" in refusal(user, "resume", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "x", "--plan-only", "--require-verified"), "--require-verified cannot be used with --plan-only"),
        (("run", "x", "--plan-only", "--output-schema", "s"), "--output-schema cannot be used with --plan-only"),
        (("run", "x", "--plan-only", "--planning", "never"), "--plan-only cannot be used with --planning never"),
        (("run", "x", "--edit", "--planning", "never"), "--edit cannot be used with --planning never"),
        (("run", "x", "--replan", "always", "--planning", "never"), "--replan cannot be used with --planning never"),
        (("run", "x", "--planner-model", "m", "--planning", "never"), "--planner-model cannot be used with"),
        (("run", "x", "--require-verified", "--planning", "never"), "--require-verified cannot be used with"),
        (("run", "--plan", "p.toml", "--planning", "auto"), "--planning cannot be used with --plan"),
        (("run", "x", "--backend", "host", "--allow-net", "a.org"), "--allow-net has no effect with --backend host"),
        (("run", "x", "--set", "backend=host", "--allow-net", "a.org"), "--allow-net has no effect with"),
        (("exec", "--backend", "host", "--allow-net", "a.org", "--", "ls"), "--allow-net has no effect with"),
        (("run", "x", "--image", "i"), "--image has no effect with --backend sandbox"),
        (("exec", "--image", "i", "--backend", "host", "--", "ls"), "--image has no effect with --backend host"),
        (("exec", "--skip-check", "--deny", "ls", "--", "ls"), "--deny cannot be used with --skip-check"),
        (("run", "x", "--allow", "git push", "--deny", "git push"), "'git push' is in both"),
        (("run", "x", "--approval-mode", "never", "--on-approval", "defer"), "--on-approval cannot be used with"),
        (("run", "x", "-q", "--plain"), "--quiet cannot be used with --plain"),
        (("run", "x", "-c", "-r", "s"), "--continue cannot be used with --resume"),
        (("run", "x", "-c", "--session", "s"), "--session cannot be used with --continue"),
        (("run", "x", "--ephemeral", "--session", "s"), "--ephemeral cannot be used with --session"),
        (("run", "x", "--record", "a", "--replay", "b"), "--record cannot be used with --replay"),
        (("run", "x", "--fork"), "--fork needs a session to copy"),
        (("run", "x", "--bare", "--profile", "p"), "--profile needs the settings file"),
        (("-c", "-r", "s"), "--continue cannot be used with --resume"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else "",
)
def test_flags_that_contradict_each_other_are_refused(user: User, words: tuple[str, ...], said: str) -> None:
    assert said in refusal(user, *words)
