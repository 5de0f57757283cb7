"""The sandbox of the real program."""

import os
import re
import socket
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest

from agent.backends.sandbox.runner import install_hint, missing_bubblewrap_warning
from agent.backends.sandbox.self_test import OPEN_FILES_HINT
from agent.backends.sandbox.types import find_program
from agent.vocabulary.errors import SandboxError
from tests.agent.backends.backend_cases import list_names
from tests.cli.terminal_user import ProgramResult, User, one_step, step_call, step_reply
from tests.programs import needs, require

pytestmark = pytest.mark.slow


def first_tool_output(ended: ProgramResult) -> str:
    return str(ended.document["step_results"][0]["tool_calls"][0]["output_preview"])


def run(user: User, command: str, *flags: str) -> ProgramResult:
    model = user.script(*one_step(step_call("s1", "run_command", command=command), step_reply("s1", "done")))
    return user.agent("run", "x", "--model", model, "--output-format", "json", "--approval-mode", "yolo", *flags)


def test_a_command_sees_neither_the_home_folder_nor_the_keys_of_the_user(user: User) -> None:
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


def test_an_added_folder_is_writable(user: User) -> None:
    for name in ("project", "more"):
        (user.home / name).mkdir()
    run(user, f"touch {user.home}/more/x", "-C", str(user.home / "project"), "--add-dir", str(user.home / "more"))
    assert (user.home / "more" / "x").exists()


def test_commands_have_no_network(user: User) -> None:
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


@needs("bwrap", "curl")
def test_every_attempt_to_reach_a_host_is_an_event(user: User) -> None:
    command = "curl -sS -m 5 http://evil.example/ 2>&1; true"
    model = user.script(*one_step(step_call("s1", "run_command", command=command), step_reply("s1", "done")))
    flags = ("--approval-mode", "yolo", "--allow-net", "example.org", "--output-format", "stream-json")
    events = user.agent("run", "x", "--model", model, *flags).events
    attempts = [(event["host"], event["port"], event["allowed"]) for event in events if event["type"] == "network"]
    assert attempts == [("evil.example", 80, False)]


@needs("pgrep")
def test_no_process_survives_its_command(user: User) -> None:
    mark = f"77{os.getpid()}"
    run(user, f"setsid sleep {mark} >/dev/null 2>&1 & nohup sleep {mark} & disown -a; echo started")
    assert subprocess.run(["pgrep", "-f", f"^sleep {mark}"], capture_output=True, check=False).returncode == 1


@needs("bwrap", "git")
def test_the_hooks_and_config_of_a_repository_cannot_be_changed(user: User) -> None:
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


@needs("bwrap", "git")
def test_the_hooks_of_a_repository_in_a_subfolder_cannot_be_changed(user: User) -> None:
    project = user.home / "project"
    subprocess.run(["git", "init", "-q", str(project / "lib" / "inner")], check=True)
    command = "cd lib && echo evil > inner/.git/hooks/pre-commit; mv inner other; git -C inner config core.pager evil"
    run(user, f"{command}; true", "-C", str(project))
    inner = project / "lib" / "inner" / ".git"
    assert (inner / "hooks" / "pre-commit").exists() is False
    assert "evil" not in (inner / "config").read_text()


def test_a_folder_that_contains_the_system_is_refused_before_anything_is_written(user: User) -> None:
    model = user.script(
        *one_step(step_call("s1", "write_file", path="windlass-was-here", content="x"), step_reply("s1", "x"))
    )
    ended = user.agent("run", "x", "--model", model, "-C", "/", "--approval-mode", "yolo")
    assert (ended.exit_code, Path("/windlass-was-here").exists()) == (44, False)


@pytest.mark.parametrize("host", ["1.2.3.4", "*.example.org", "https://example.org/x"])
def test_an_invalid_host_is_a_usage_error(user: User, host: str) -> None:
    model = user.script(*one_step(step_reply("s1", "done")))
    ended = user.agent("run", "x", "--model", model, "--allow-net", host, "--output-format", "stream-json")
    assert (ended.exit_code, ended.events[0]["type"], ended.events[-1]["exit_code"]) == (2, "init", 2)


def test_on_the_host_every_command_needs_approval(user: User) -> None:
    model = user.script(*one_step(step_call("s1", "run_command", command="echo hi"), step_reply("s1", "done")))
    flags = ("--backend", "host", "--output-format", "stream-json")
    ended = user.agent("run", "x", "--model", model, *flags)
    assert ended.exit_code == 57
    assert any("without a" in str(warning) for warning in ended.events[0]["warnings"])
    assert user.agent("run", "x", "--model", model, *flags, "--approval-mode", "yolo").exit_code == 0


as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can replace bubblewrap for one process")


# Reports like bubblewrap, but confines nothing.
LEAKY_BWRAP = """
mapfile -d '' -t options <&"$2"; shift 3
for index in "${!options[@]}"; do
  [ "${options[index]}" = "--json-status-fd" ] && status=${options[index + 1]}
  [ "${options[index]}" = /.windlass/starter.py ] && starter=${options[index - 1]}
done
"${@:1:$#-1}" "$starter" <&0 & echo "{ \\"child-pid\\": $! }" >&$status
wait $!; code=$?; echo "{ \\"exit-code\\": $code }" >&$status; exit $code
"""


def run_with_bwrap(user: User, bwrap: Path, *flags: str, command: str) -> ProgramResult:
    """Run a command in a project folder with another file in place of the bubblewrap program."""
    require("mount", "unshare")
    (user.home / "project").mkdir(exist_ok=True)
    model = user.script(*one_step(step_call("s1", "run_command", command=command), step_reply("s1", "done")))
    mount = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    installed = find_program("bwrap")
    replaced = ["unshare", "-m", "bash", "-c", mount, "bash", str(bwrap), str(installed)] if installed else []
    argv = user.command("run", "x", "--model", model, "-C", str(user.home / "project"), *flags)
    ended = subprocess.run(
        [*replaced, *argv],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, env=user.environment(), timeout=60, check=False,
    )  # fmt: skip
    return ProgramResult(exit_code=ended.returncode, stdout=ended.stdout, stderr=ended.stderr)


def write_fake_bwrap(folder: Path, script: str) -> Path:
    fake = folder / "fake-bwrap"
    fake.write_text(f"#!/bin/bash\n{script}\n")
    fake.chmod(0o755)
    return fake


@as_root
@needs("bwrap")
def test_44_is_a_sandbox_that_fails_the_self_test(user: User, tmp_path: Path) -> None:
    fake = write_fake_bwrap(tmp_path, LEAKY_BWRAP)
    ended = run_with_bwrap(user, fake, command="touch ran")
    assert (ended.exit_code, (user.home / "project" / "ran").exists()) == (44, False), ended.stderr
    assert "the bubblewrap sandbox does not work here: write-outside" in ended.stderr
    assert install_hint() in ended.stderr


def escape_attempt(user: User) -> str:
    (user.home / "outside").mkdir()
    return f"touch {user.home}/outside/x; cat /etc/shadow; touch inside; echo done"


def created_files(user: User) -> tuple[list[str], list[str]]:
    """Return the names of the files outside and inside the project."""
    return list_names(user.home / "outside"), list_names(user.home / "project")


@as_root
def test_without_bubblewrap_commands_run_under_landlock_and_one_line_warns(user: User) -> None:
    ended = run_with_bwrap(user, Path("/dev/null"), "--approval-mode", "yolo", command=escape_attempt(user))
    assert ended.exit_code == 0, ended.stderr
    assert [line for line in ended.stderr.splitlines() if "warning" in line] == [
        f"warning: {missing_bubblewrap_warning()}"
    ]
    assert created_files(user) == ([], ["inside"])


@as_root
@needs("bwrap")
def test_a_bubblewrap_that_cannot_start_ends_the_run_and_is_not_replaced_by_landlock(
    user: User, tmp_path: Path
) -> None:
    fake, attempt = write_fake_bwrap(tmp_path, "echo bwrap: no namespaces here >&2; exit 1"), escape_attempt(user)
    ended = run_with_bwrap(user, fake, "--approval-mode", "yolo", command=attempt)
    assert ended.exit_code == SandboxError.exit_code, ended.stderr
    assert "bubblewrap cannot start: bwrap: no namespaces here" in ended.stderr
    assert "--set sandbox_type=landlock" in ended.stderr
    assert created_files(user) == ([], [])
    # The hint helps.
    chosen = ("--approval-mode", "yolo", "--set", "sandbox_type=landlock")
    ended = run_with_bwrap(user, fake, *chosen, command=attempt)
    assert (ended.exit_code, created_files(user)) == (0, ([], ["inside"])), ended.stderr


def outputs_of(user: User, *calls: dict[str, object]) -> list[str]:
    """Run these calls of one step, and return their outputs."""
    model = user.script(*one_step(*calls, step_reply("s1", "done")))
    ended = user.agent("run", "x", "--model", model, "--output-format", "json", "--approval-mode", "yolo")
    return [str(call["output_preview"]) for call in ended.document["step_results"][0]["tool_calls"]]


@needs("bwrap", "curl", "pgrep")
def test_a_server_started_in_one_call_is_reached_in_the_next_and_ends_with_the_run(user: User) -> None:
    server = "/usr/bin/python3 -m http.server 8123 --bind 127.0.0.1"
    curl = "curl -sS --retry 50 --retry-delay 1 --retry-connrefused http://localhost:8123/ | head -n 1; cat /tmp/note"
    started, reached = outputs_of(
        user,
        step_call("s1", "run_command", command=f"exec {server} # {user.home}", background=True),
        step_call("s1", "run_command", command=f"echo kept > /tmp/note; {curl}"),
    )
    assert started.startswith("Started job1 in the background")
    assert reached.splitlines()[0].startswith("<!DOCTYPE")
    assert reached.splitlines()[-1] == "kept"
    assert subprocess.run(["pgrep", "-f", str(user.home)], capture_output=True, check=False).stdout == b""


@needs("bwrap")
def test_the_model_is_told_what_still_runs_in_the_background(user: User) -> None:
    left, found = outputs_of(
        user,
        step_call("s1", "run_command", command="echo kept > /tmp/note; sleep 300 & echo started"),
        step_call("s1", "run_command", command="cat /tmp/note; pgrep -x sleep | wc -l"),
    )
    assert re.fullmatch(
        r"started\n\[1 process is still running in the background: \d+ \(sleep 300\); its later output is not kept\]",
        left,
    )
    assert found.splitlines() == ["kept", "1"]


def test_without_bubblewrap_the_model_is_told_what_has_ended(user: User) -> None:
    ended = run(user, "sleep 300 & echo started", "--backend", "host")
    assert "[1 process left in the background ended with the command" in first_tool_output(ended)


@needs("bwrap")
def test_the_full_output_of_an_earlier_command_can_be_searched_in_the_sandbox(user: User) -> None:
    _, found = outputs_of(
        user,
        step_call("s1", "run_command", command="seq 1 200000"),
        step_call(
            "s1",
            "run_command",
            command=f"cd {user.data}/sessions/*/outputs && grep -x 123456 *; touch x; cat ../events.jsonl",
        ),
    )
    lines = found.splitlines()
    assert lines[0].endswith("123456")
    assert "Read-only file system" in lines[1]
    assert "No such file" in lines[2]


@needs("bwrap")
def test_doctor_finds_bubblewrap_where_the_sandbox_finds_it(user: User) -> None:
    (user.home / "empty").mkdir()
    shown = user.agent("doctor", PATH=str(user.home / "empty")).stdout
    assert re.search(rf"bwrap +{find_program('bwrap')}", shown), shown


def test_doctor_tries_the_sandbox_that_the_settings_choose(user: User) -> None:
    shown = user.agent("doctor", AGENT_SANDBOX_TYPE="landlock").stdout
    assert "landlock: passed" in shown.lower(), shown
    assert "modes and times of the user's files outside can be changed" in shown


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("limit", [14, 20, 28])
def test_too_few_open_files_are_named_with_what_helps(user: User, limit: int) -> None:
    model = user.script(*one_step(step_call("s1", "run_command", command="echo hi"), step_reply("s1", "done")))
    words = user.command("run", "x", "--model", model, "--approval-mode", "yolo")
    ended = subprocess.run(
        ["bash", "-c", f'ulimit -n {limit}; exec "$@"', "bash", *words],
        cwd=user.home,
        env=user.environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, OPEN_FILES_HINT in ended.stderr) == (44, True), ended.stderr
    assert "bubblewrap 0.8" not in ended.stderr


@pytest.mark.parametrize("sandbox", ["auto", "landlock"])
def test_setting_up_the_sandbox_creates_nothing_in_repositories(user: User, sandbox: str) -> None:
    require("git")
    project = user.home / "project"
    nested = project / "libs" / "one" / ".git"
    for name in ("objects", "refs"):
        (nested / name).mkdir(parents=True)
    (nested / "HEAD").write_text("ref: refs/heads/main\n")
    before = sorted(project.rglob("*"))
    run(user, "true", "-C", str(project), "--set", f"sandbox_type={sandbox}")
    assert sorted(project.rglob("*")) == before
    # One that is refused, too.
    run(user, "true", "-C", str(project), "--add-dir", "/etc", "--set", f"sandbox_type={sandbox}")
    assert sorted(project.rglob("*")) == before
