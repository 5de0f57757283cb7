"""Neither a configured key nor an unknown token is ever printed or stored."""

from pathlib import Path

import pytest

from tests.cli.terminal_user import User, one_step, step_call, step_reply

pytestmark = pytest.mark.slow

KEY = "sk-test-SENTINEL"
TOKEN = "ghp_" + "a1B2" * 9


def stored_text(user: User) -> str:
    """Return the text of all stored files outside of workspaces."""
    paths = [path for path in user.data.rglob("*") if path.is_file() and "workspace" not in path.parts]
    assert paths
    return "".join(path.read_text(errors="replace") for path in paths)


@pytest.mark.parametrize("output_format", ["text", "json", "stream-json"])
def test_keys_and_tokens_are_redacted_in_output_and_on_disk(user: User, output_format: str) -> None:
    replies = one_step(
        step_call("s1", "run_command", command=f"echo {KEY} {TOKEN}"),
        step_call("s1", "edit_file", path="a.txt", old_text="x", new_text=f"{KEY} {TOKEN}"),
        step_reply("s1", f"The key is {KEY}, the token {TOKEN}."),
    )
    flags = ("--approval-mode", "yolo", "--backend", "host", "--output-format", output_format, "--session", "s")
    (user.data / "sessions" / "s" / "workspace").mkdir(parents=True)
    (user.data / "sessions" / "s" / "workspace" / "a.txt").write_text("x\n")
    ended = user.agent(
        "run", "--model", user.script(*replies), *flags, f"look at {KEY} and {TOKEN}", OPENAI_API_KEY=KEY
    )
    assert ended.exit_code == 0, ended.stderr
    for text in (ended.stdout, ended.stderr, stored_text(user)):
        assert KEY not in text
        assert TOKEN not in text
    assert "[REDACTED]" in ended.stdout
    assert "[REDACTED]" in stored_text(user)


def test_diffs_and_the_event_log_contain_no_token(user: User, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    replies = one_step(step_call("s1", "write_file", path="a.txt", content=f"{TOKEN}\n"), step_reply("s1", "done"))
    flags = ("--approval-mode", "auto-edit", "--session", "s", "-C", str(folder))
    assert user.agent("run", "--model", user.script(*replies), *flags, "write it").exit_code == 0
    assert (folder / "a.txt").read_text() == f"{TOKEN}\n"
    shown = user.agent("sessions", "diff", "s").stdout
    assert shown.endswith("+[REDACTED]\n")
    assert user.agent("sessions", "undo", "s", "--yes").exit_code == 0
    assert TOKEN not in (user.data / "sessions" / "s" / "events.jsonl").read_text()


def test_a_cassette_contains_no_secret_from_the_request(user: User) -> None:
    (user.home / "a.txt").write_text(f"{KEY} {TOKEN}")
    model, cassette = user.script(*one_step(step_reply("s1", f"{KEY} {TOKEN}"))), user.home / "cassette.jsonl"
    request = ("-f", "a.txt", f"look at {KEY} and {TOKEN}")
    recorded = user.agent("run", "--model", model, "--record", str(cassette), *request, GITHUB_TOKEN=KEY)
    text = cassette.read_text()
    assert (recorded.exit_code, KEY in text, TOKEN in text, "[REDACTED]" in text) == (0, False, False, True)
    assert user.agent("run", "--replay", str(cassette), *request, GITHUB_TOKEN=KEY).stdout == recorded.stdout
