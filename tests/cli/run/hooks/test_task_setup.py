"""What a task works on: a repository, input files, and the files it leaves in output/."""

import base64
import hashlib
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.terminal_user import ProgramResult, User, lead_call, lead_reply
from tests.programs import needs

pytestmark = [pytest.mark.slow, needs("git")]
AUTO = {"AGENT_PLANNING": "auto", "AGENT_APPROVAL_MODE": "yolo"}
TOKEN = "tok-Zq7pLw93KsVb42Xn"


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    command = ("git", *identity, *words)
    return subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    work = tmp_path.with_name(f"{tmp_path.name}-origin") / "app"
    work.mkdir(parents=True)
    git(work, "init", "--quiet")
    (work / "README").write_text("hello\n")
    git(work, "add", ".")
    git(work, "commit", "--quiet", "-m", "first")
    bare = work.with_name("app.git")
    git(work, "clone", "--quiet", "--bare", str(work), str(bare))
    git(bare, "update-server-info")
    return bare


def run(
    user: User, *words: str, replies: tuple[object, ...] = (lead_reply("Done."),), form: str = "json"
) -> ProgramResult:
    return user.agent("run", "--model", user.script(*replies), "--output-format", form, *words, "go", **AUTO)


SHOW = (lead_call("run_command", command="cat README; git log --oneline | wc -l; pwd"), lead_reply("Done."))


def test_a_run_works_in_a_clone_of_the_repository(user: User, origin: Path) -> None:
    result = run(user, "--repo", str(origin), "--branch", "main", replies=SHOW, form="stream-json")
    assert result.exit_code == 0, result.stderr
    (output,) = [event["output"] for event in result.events if event["type"] == "tool.completed"]
    shown = str(output).splitlines()
    assert shown[:2] == ["hello", "1"] and shown[2].endswith("/workspace/app")
    assert result.events[0]["cwd"] == shown[2]
    again = run(user, "--repo", str(origin), "--session", str(result.events[0]["session_id"]), replies=SHOW)
    assert again.exit_code == 0, again.stderr


def test_a_wrong_branch_fails_the_task_in_one_line(user: User, origin: Path) -> None:
    result = run(user, "--repo", str(origin), "--branch", "nope", form="stream-json")
    assert result.exit_code == 1
    assert [event["type"] for event in result.events] == ["init", "message", "error", "result"]
    message = f"cannot clone {origin}: Remote branch nope not found in upstream origin"
    assert result.events[-1]["error"] == message and "\n" not in message
    quiet = run(user, "--repo", str(origin), "--branch", "nope", "-q", form="text")
    assert quiet.stderr.splitlines()[0] == f"error: {message}"


class _Handler(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        given = self.headers.get("Authorization", "")
        if given != "Basic " + base64.b64encode(f"me:{TOKEN}".encode()).decode():
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
            return
        super().do_GET()

    def log_message(self, *args: object) -> None:
        """Write nothing."""


@contextmanager
def server(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder))) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


def test_a_token_in_the_url_is_used_and_appears_nowhere(user: User, origin: Path) -> None:
    with server(origin.parent) as address:
        show = (lead_call("run_command", command="cat .git/config README"), lead_reply(f"The token is {TOKEN}."))
        result = run(user, "--repo", f"http://me:{TOKEN}@{address}/app.git", replies=show, form="stream-json")
        wrong = run(user, "--repo", f"http://me:not-{TOKEN}@{address}/app.git")
    assert result.exit_code == 0, result.stderr
    assert "hello" in result.stdout and TOKEN not in result.stdout + result.stderr
    assert wrong.exit_code == 1 and TOKEN not in wrong.stdout + wrong.stderr
    stored = [path for path in user.data.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert stored == []
    assert TOKEN not in " ".join(str(path) for path in user.data.rglob("*"))


def test_branch_needs_a_repository(user: User) -> None:
    result = user.agent("run", "--branch", "main", "x")
    assert (result.exit_code, result.stderr) == (2, "error: --branch needs --repo\n")


def test_the_same_input_can_be_given_twice_and_another_one_needs_another_name(user: User) -> None:
    (user.home / "a").mkdir()
    (user.home / "b").mkdir()
    (user.home / "a" / "data.csv").write_text("1")
    (user.home / "b" / "data.csv").write_text("2")
    first = run(user, "--session", "s", "-i", "a/data.csv", "--scratch")
    assert first.exit_code == 0, first.stderr
    assert run(user, "--session", "s", "-i", "a/data.csv", "--scratch").exit_code == 0
    other = run(user, "--session", "s", "-i", "b/data.csv", "--scratch")
    assert other.exit_code == 42
    assert "stage it under another name (-i data-2.csv=b/data.csv), or move one away" in other.stderr
    named = run(user, "--session", "s", "-i", "data-2.csv=b/data.csv", "--scratch")
    assert named.exit_code == 0, named.stderr
    staged = user.data / "sessions" / "s" / "workspace" / "input"
    assert {path.name: path.read_text() for path in staged.iterdir()} == {"data.csv": "1", "data-2.csv": "2"}


@pytest.mark.parametrize("name", ["../x", "a/b", ".."])
def test_the_name_of_an_input_cannot_leave_its_folder(user: User, name: str) -> None:
    (user.home / "data").write_text("1")
    result = run(user, "--session", "s", "-i", f"{name}=data", "--scratch")
    assert result.exit_code == 42 and "cannot be the name of an input file" in result.stderr
    assert not (user.data / "sessions" / "s" / "workspace" / "input").exists()


def test_a_failed_staging_leaves_nothing(user: User) -> None:
    (user.home / "data").write_text("1")
    result = run(user, "--session", "s", "-i", "data", "-i", "missing", "--scratch")
    assert result.exit_code == 42
    assert not (user.data / "sessions" / "s" / "workspace" / "input").exists()


WRITE = (
    lead_call("run_command", command="mkdir -p output/deep; printf report > output/deep/report.txt"),
    lead_call("write_file", path="output/notes.md", content="notes\n"),
    lead_reply("Done."),
)


def test_what_is_written_to_output_is_an_artifact_with_size_and_hash(user: User) -> None:
    project = user.home / "project"
    (project / "output").mkdir(parents=True)
    (project / "output" / "old.txt").write_text("old")
    document = run(user, "-C", str(project), replies=WRITE).document
    assert document["artifacts"] == ["output/notes.md", "output/deep/report.txt"]
    assert document["cwd"] == str(project)
    assert document["files"] == [
        {
            "path": str(project / "output" / "notes.md"),
            "name": "output/notes.md",
            "bytes": 6,
            "sha256": hashlib.sha256(b"notes\n").hexdigest(),
        },
        {
            "path": str(project / "output" / "deep" / "report.txt"),
            "name": "output/deep/report.txt",
            "bytes": 6,
            "sha256": hashlib.sha256(b"report").hexdigest(),
        },
    ]


def test_the_text_form_names_the_folder_of_the_files(user: User) -> None:
    result = run(user, "--scratch", "--session", "s", replies=WRITE, form="text")
    assert result.stdout == "Done.\n"
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("files")]
    assert line.endswith("/sessions/s/workspace: output/notes.md, output/deep/report.txt")
    project = user.home / "project"
    project.mkdir()
    elsewhere = run(user, "-C", str(project), replies=WRITE, form="text")
    assert "files in ~/project: output/notes.md" in elsewhere.stderr


def test_links_in_output_are_not_followed(user: User) -> None:
    link = (
        lead_call("run_command", command="mkdir output; ln -s /etc output/e; ln -s /etc/passwd output/p"),
        lead_reply("Done."),
    )
    document = run(user, "--scratch", "--session", "s", replies=link).document
    assert (document["artifacts"], document.get("files")) == ([], None)
