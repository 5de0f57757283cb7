"""The box as a user of the real program meets it."""

import os
import socket
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.terminal_user import ProgramResult, User, one_step, step_call, step_reply

pytestmark = pytest.mark.slow


def first_tool_output(ended: ProgramResult) -> str:
    return str(ended.document["step_results"][0]["tool_calls"][0]["output_preview"])


def run(user: User, command: str, *more: str) -> ProgramResult:
    model = user.script(*one_step(step_call("s1", "run_command", command=command), step_reply("s1", "done")))
    return user.agent("run", "x", "--model", model, "--output-format", "json", "--approval-mode", "yolo", *more)


def test_a_command_sees_neither_the_home_nor_the_keys_of_the_user(user: User) -> None:
    (user.home / "secret.txt").write_text("SENTINEL")
    ended = run(user, f"cat {user.home}/secret.txt; ls -A ~; cat /proc/*/environ | tr '\\0' '\\n'")
    assert "SENTINEL" not in first_tool_output(ended).replace(str(user.home), "")
    assert "OPENAI" not in first_tool_output(ended)


def test_a_command_writes_only_in_the_workspace(user: User) -> None:
    outside = user.home / "outside"
    outside.mkdir()
    project = user.home / "project"
    project.mkdir()
    run(user, f"touch {outside}/x; touch inside; echo done", "-C", str(project))
    assert (list(outside.iterdir()), [path.name for path in project.iterdir()]) == ([], ["inside"])


def test_a_further_folder_is_opened_by_name(user: User) -> None:
    for name in ("project", "more"):
        (user.home / name).mkdir()
    run(user, f"touch {user.home}/more/x", "-C", str(user.home / "project"), "--add-dir", str(user.home / "more"))
    assert (user.home / "more" / "x").exists()


def test_the_network_is_off(user: User) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        reached = threading.Event()
        listener.settimeout(15)

        def accept() -> None:
            try:
                listener.accept()
            except OSError:
                return
            reached.set()

        threading.Thread(target=accept, daemon=True).start()
        run(user, f"exec 3<>/dev/tcp/127.0.0.1/{listener.getsockname()[1]}")
        assert not reached.is_set()


def test_every_attempt_to_reach_a_host_is_an_event(user: User) -> None:
    command = "curl -sS -m 5 http://evil.example/ 2>&1; true"
    model = user.script(*one_step(step_call("s1", "run_command", command=command), step_reply("s1", "done")))
    flags = ("--approval-mode", "yolo", "--allow-net", "example.org", "--output-format", "stream-json")
    events = user.agent("run", "x", "--model", model, *flags).events
    tried = [(event["host"], event["port"], event["allowed"]) for event in events if event["type"] == "network"]
    assert tried == [("evil.example", 80, False)]


def test_nothing_survives_the_end_of_a_command(user: User) -> None:
    mark = f"77{os.getpid()}"
    run(user, f"setsid sleep {mark} >/dev/null 2>&1 & nohup sleep {mark} & disown -a; echo started")
    assert subprocess.run(["pgrep", "-f", f"^sleep {mark}"], capture_output=True, check=False).returncode == 1


def test_the_hooks_and_settings_of_a_repository_cannot_be_changed(user: User) -> None:
    project = user.home / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    before = {path: path.read_bytes() for path in (project / ".git").rglob("*") if path.is_file()}
    run(
        user,
        "echo evil > .git/hooks/pre-commit; git config core.pager evil; mv .git .git2; rm -rf .git/hooks; true",
        "-C", str(project),
    )  # fmt: skip
    assert {path: path.read_bytes() for path in before if path.exists()} == before
    assert not (project / ".git/hooks/pre-commit").exists()


def test_the_hooks_of_a_repository_in_a_subfolder_cannot_be_changed_either(user: User) -> None:
    project = user.home / "project"
    subprocess.run(["git", "init", "-q", str(project / "lib" / "inner")], check=True)
    command = "cd lib && echo evil > inner/.git/hooks/pre-commit; mv inner other; git -C inner config core.pager evil"
    run(user, f"{command}; true", "-C", str(project))
    inner = project / "lib" / "inner" / ".git"
    assert (inner / "hooks" / "pre-commit").exists() is False
    assert "evil" not in (inner / "config").read_text()


def test_a_folder_that_cannot_be_boxed_is_refused_before_anything_is_written(user: User) -> None:
    model = user.script(
        *one_step(step_call("s1", "write_file", path="windlass-was-here", content="x"), step_reply("s1", "x"))
    )
    ended = user.agent("run", "x", "--model", model, "-C", "/", "--approval-mode", "yolo")
    assert (ended.exit_code, Path("/windlass-was-here").exists()) == (44, False)


@pytest.mark.parametrize("host", ["1.2.3.4", "*.example.org", "https://example.org/x"])
def test_a_host_that_is_none_is_a_wrong_setting(user: User, host: str) -> None:
    model = user.script(*one_step(step_reply("s1", "done")))
    ended = user.agent("run", "x", "--model", model, "--allow-net", host, "--output-format", "stream-json")
    assert (ended.exit_code, ended.events[0]["type"], ended.events[-1]["exit_code"]) == (52, "init", 52)


def test_on_the_host_every_command_asks(user: User) -> None:
    model = user.script(*one_step(step_call("s1", "run_command", command="echo hi"), step_reply("s1", "done")))
    flags = ("--backend", "host", "--output-format", "stream-json")
    ended = user.agent("run", "x", "--model", model, *flags)
    assert ended.exit_code == 57
    assert any("without a box" in str(warning) for warning in ended.events[0]["warnings"])
    assert user.agent("run", "x", "--model", model, *flags, "--approval-mode", "yolo").exit_code == 0


@pytest.mark.skipif(os.getuid() != 0, reason="only root can hide bubblewrap from a process of its own")
def test_44_is_a_box_that_does_not_hold(user: User, tmp_path: Path) -> None:
    """A bubblewrap that boxes nothing is found out before any command runs."""
    fake = tmp_path / "bwrap"
    fake.write_text('#!/bin/bash\nwhile [ "$1" != "--" ]; do shift; done\nshift\nexec "$@"\n')
    fake.chmod(0o755)
    model = user.script(*one_step(step_call("s1", "run_command", command="touch ran"), step_reply("s1", "done")))
    line = f'mount --bind {fake} /usr/bin/bwrap && exec "$@"'
    inner = user.command("run", "x", "--model", model, "-C", str(user.home))
    ended = subprocess.run(
        ["unshare", "-m", "bash", "-c", line, "bash", *inner],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, env=user.environment(), timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, (user.home / "ran").exists()) == (44, False), ended.stderr
    assert "install bubblewrap" in ended.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can hide bubblewrap from a process of its own")
def test_without_bubblewrap_landlock_holds_the_commands_and_it_is_said_aloud(user: User) -> None:
    outside = user.home / "outside"
    outside.mkdir()
    project = user.home / "project"
    project.mkdir()
    command = f"touch {outside}/x; cat /etc/shadow; touch inside; echo done"
    model = user.script(*one_step(step_call("s1", "run_command", command=command), step_reply("s1", "done")))
    inner = user.command("run", "x", "--model", model, "-C", str(project), "--approval-mode", "yolo")
    ended = subprocess.run(
        ["unshare", "-m", "bash", "-c", 'mount --bind /dev/null /usr/bin/bwrap && exec "$@"', "bash", *inner],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, env=user.environment(), timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "does not cover" in ended.stderr
    assert (list(outside.iterdir()), [path.name for path in project.iterdir()]) == ([], ["inside"])
