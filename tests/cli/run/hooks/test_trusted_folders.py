"""Hooks of a folder: used only after `agent trust`, and only as long as nothing about them changes."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.repl.terminal_session import TerminalSession
from tests.cli.run.hooks.hook_files import hooks_json, save_hooks, script, user_hooks
from tests.cli.terminal_user import ProgramResult, User, lead_call, lead_reply

pytestmark = pytest.mark.slow
AUTO = {"AGENT_PLANNING": "auto", "AGENT_APPROVAL_MODE": "yolo"}
CALL = (lead_call("run_command", command="echo hi"), lead_reply("Done."))
DENIES = "#!/bin/sh\necho 'not in this project' >&2\nexit 2\n"


@pytest.fixture
def project(user: User) -> Path:
    """A folder with a hook, as a repository would bring it."""
    folder = user.home / "project"
    script(folder, ".claude/hooks/guard.sh", DENIES)
    command = '"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh'
    save_hooks(folder / ".claude" / "settings.json", hooks_json("PreToolUse", command, "Bash"))
    return folder


def run(user: User, project: Path, *words: str, replies: tuple[object, ...] = CALL) -> ProgramResult:
    model = user.script(*replies)
    words = ("run", "--model", model, "--output-format", "stream-json", "-C", str(project), *words, "go")
    return user.agent(*words, **AUTO)


def statuses(result: ProgramResult) -> list[object]:
    return [event["status"] for event in result.events if event["type"] == "tool.completed"]


def test_hooks_of_a_folder_are_left_out_with_a_warning(user: User, project: Path) -> None:
    result = run(user, project)
    assert statuses(result) == ["ok"]
    warning = f"{project} has hooks that you have not trusted; `agent trust` shows them and asks"
    assert result.events[0]["warnings"] == [warning]


def test_a_strict_run_needs_them_trusted(user: User, project: Path) -> None:
    result = run(user, project, "--strict-config")
    assert result.exit_code == 55
    assert result.events[-1]["subtype"] == "error_untrusted"


def test_trust_shows_everything_and_needs_a_terminal_or_yes(user: User, project: Path) -> None:
    refused = user.agent("trust", str(project))
    assert refused.exit_code == 55
    assert 'PreToolUse Bash  "$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh  (.claude/settings.json)' in refused.stdout
    assert ".claude/hooks/guard.sh\n" in refused.stdout
    assert user.agent("trust", "--check", str(project)).exit_code == 55
    assert user.agent("trust", "--yes", str(project)).exit_code == 0
    assert user.agent("trust", "--check", str(project)).exit_code == 0
    result = run(user, project, "--strict-config")
    assert statuses(result) == ["denied"]
    assert "not in this project" in result.stdout


def test_a_changed_script_is_not_run(user: User, project: Path) -> None:
    user.agent("trust", "--yes", str(project))
    script(project, ".claude/hooks/guard.sh", "#!/bin/sh\ntouch ran\n")
    result = run(user, project)
    assert statuses(result) == ["ok"] and not (project / "ran").exists()
    assert "have changed since you trusted them" in str(result.events[0]["warnings"])
    assert user.agent("trust", "--check", str(project)).exit_code == 55


def test_a_script_that_the_run_itself_changes_is_not_run(user: User, project: Path) -> None:
    script(project, ".claude/hooks/guard.sh", "#!/bin/sh\nexit 0\n")
    user.agent("trust", "--yes", str(project))
    change = lead_call("run_command", command="echo 'touch $CLAUDE_PROJECT_DIR/escaped' >> .claude/hooks/guard.sh")
    result = run(user, project, replies=(change, *CALL))
    # The guard cannot decide any more, and so denies.
    assert statuses(result) == ["ok", "denied"]
    assert not (project / "escaped").exists()


def test_trust_that_is_taken_back_during_a_run_ends_at_once(user: User, project: Path) -> None:
    script(project, ".claude/hooks/guard.sh", "#!/bin/sh\nexit 0\n")
    user.agent("trust", "--yes", str(project))
    user_hooks(user, hooks_json("PostToolUse", f"rm {user.data / 'trusted.json'}"))
    result = run(user, project, replies=(lead_call("run_command", command="echo first"), *CALL))
    assert statuses(result) == ["ok", "denied"]
    assert "are no longer trusted" in result.stdout


def test_hooks_of_a_folder_can_be_stricter_but_not_approve(user: User, project: Path) -> None:
    allow = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}})
    script(project, ".claude/hooks/guard.sh", f"#!/bin/sh\necho '{allow}'\n")
    user.agent("trust", "--yes", str(project))
    curl = (lead_call("run_command", command="curl https://example.org"), lead_reply("Done."))
    model = user.script(*curl)
    words = ("run", "--model", model, "--output-format", "stream-json", "-C", str(project), "go")
    environ = {"AGENT_PLANNING": "auto", "AGENT_APPROVAL_MODE": "ask"}
    assert statuses(user.agent(*words, **environ)) == ["denied"]
    user_hooks(user, hooks_json("PreToolUse", str(project / ".claude/hooks/guard.sh")))
    assert statuses(user.agent(*words, **environ)) != ["denied"]


def test_trust_can_be_taken_back(user: User, project: Path) -> None:
    user.agent("trust", "--yes", str(project))
    assert user.agent("trust", "--revoke", str(project)).exit_code == 0
    assert statuses(run(user, project)) == ["ok"]
    assert user.agent("trust", "--revoke", str(project)).exit_code == 42


def test_a_broken_file_of_a_folder_is_a_warning(user: User, project: Path) -> None:
    (project / ".claude" / "settings.json").write_text("{")
    result = run(user, project)
    assert statuses(result) == ["ok"]
    assert "are left out: .claude/settings.json: not valid JSON" in str(result.events[0]["warnings"])


def test_a_broken_file_of_the_user_stops_the_run(user: User) -> None:
    user_hooks(user, hooks_json("PreToolUse", "true"))
    (user.home / ".config/agent/hooks.json").write_text("{")
    assert run(user, user.home).exit_code == 52
    assert statuses(run(user, user.home, "--bare")) == ["ok"]


def test_hooks_are_listed_and_tried_out(user: User, project: Path) -> None:
    user_hooks(user, hooks_json("PreToolUse", "grep -q prod && exit 2 || exit 0", "Bash"))
    listed = user.agent("hooks", "list", "-C", str(project), "--json").stdout
    rows = [(row["event"], row["matcher"], row["state"]) for row in json.loads(listed)]
    assert rows == [("PreToolUse", "Bash", "active"), ("PreToolUse", "Bash", "not trusted")]
    tried = user.agent("hooks", "test", "PreToolUse", "run_command", "command=deploy prod")
    assert tried.exit_code == 1 and "deny" in tried.stdout
    assert user.agent("hooks", "test", "PreToolUse", "run_command", "command=ls").exit_code == 0
    assert user.agent("hooks", "test", "PreToolUs").exit_code == 2
    assert user.agent("hooks", "test", "Stop").stderr == "no hook of yours is for Stop\n"
    assert user.agent("hooks", "list", cwd=user.home, AGENT_CONFIG_DIR=str(user.home / "none")).stdout == "(no hooks)\n"


def test_hooks_are_tried_out_with_the_names_that_scripts_know(user: User) -> None:
    script(
        user.home,
        "hooks/protect.py",
        "import json, sys\nsys.exit('.env' in json.load(sys.stdin)['tool_input']['file_path'] and 2)",
    )
    user_hooks(user, hooks_json("PreToolUse", 'python3 "$HOME"/hooks/protect.py', "Write|Edit"))
    tried = user.agent("hooks", "test", "PreToolUse", "Write", "file_path=.env", "content=x", "--json")
    assert [(row["name"], row["decision"]) for row in json.loads(tried.stdout)] == [("python3 protect.py", "deny")]
    other = user.agent("hooks", "test", "PreToolUse", "Bash", "command=ls", "--json")
    assert [(row["decision"], row["reason"]) for row in json.loads(other.stdout)] == [
        ("no match", "it is for Write|Edit")
    ]
    user_hooks(user, hooks_json("UserPromptSubmit", "grep -q password && exit 2 || exit 0"))
    assert user.agent("hooks", "test", "UserPromptSubmit", "my password is x").exit_code == 1
    assert user.agent("hooks", "test", "UserPromptSubmit", "prompt=good morning").exit_code == 0


def test_a_hook_that_never_runs_is_named_in_the_list(user: User) -> None:
    user_hooks(user, hooks_json("Notification", "notify-send done"))
    listed = user.agent("hooks", "list", cwd=user.home)
    assert listed.stdout == "(no hooks)\n"
    assert "Notification hooks never run: Windlass has no such event" in listed.stderr


def test_trust_asks_at_a_terminal(user: User, project: Path) -> None:
    session = TerminalSession(user, "trust", str(project))
    session.wait_for("Trust them?")
    session.send("y\r")
    assert session.wait_exit() == 0
    assert user.agent("trust", "--check", str(project)).exit_code == 0


def test_a_run_leaves_a_manifest_of_what_tools_and_commands_changed(user: User) -> None:
    folder = user.home / "work"
    folder.mkdir()
    (folder / "old.txt").write_text("one\ntwo\n")
    replies = (
        lead_call("write_file", path="new.txt", content="a\nb\n"),
        lead_call("run_command", command="echo three >> old.txt; mkdir -p node_modules; touch node_modules/x .hidden"),
        lead_reply("Done."),
    )
    result = run(user, folder, replies=replies)
    session = user.data / "sessions" / str(result.events[0]["session_id"])
    manifest = json.loads((session / "manifest.json").read_text())
    entries = {entry["path"]: entry for entry in manifest["changes"]}
    assert {path: entry["status"] for path, entry in entries.items()} == {"new.txt": "added", "old.txt": "modified"}
    assert (manifest["files"], manifest["added_lines"], manifest["deleted_lines"]) == (2, 3, 0)
    assert entries["old.txt"]["bytes"] == 14 and "+three" in entries["old.txt"]["diff"]


MODULE = "open('escaped', 'w').close()"
# What a command plants in a trusted folder so that its hook runs it, outside the sandbox.
PLANTS = {
    "compiled module": (
        "python3 .claude/hooks/guard.py",
        "cp .claude/hooks/helper.py kept.py; "
        f"printf '%-199s\\n' \"{MODULE}\" > .claude/hooks/helper.py; "
        "touch -r .claude/settings.json .claude/hooks/helper.py kept.py; "
        "python3 -m py_compile .claude/hooks/helper.py; cp -p kept.py .claude/hooks/helper.py || true",
    ),
    "link to a module": (
        "python3 .claude/hooks/guard.py",
        f'echo "{MODULE}" > evil.py; ln -s ../../evil.py .claude/hooks/json.py',
    ),
    "link to a package": (
        "python3 .claude/hooks/guard.py",
        f'mkdir evil; echo "{MODULE}" > evil/__init__.py; ln -s ../../evil .claude/hooks/json',
    ),
    "module beside a script": ("python3 tools/guard.py", f'echo "{MODULE}" > tools/json.py'),
    "package beside a script": (
        "python3 tools/guard.py",
        f'mkdir tools/json; echo "{MODULE}" > tools/json/__init__.py',
    ),
    "makefile": ("make -s guard", "printf 'guard:\\n\\ttouch escaped\\n' > GNUmakefile"),
    "program on PATH": (
        "python3 .claude/hooks/guard.py",
        "printf '#!/bin/sh\\ntouch escaped\\n' > .venv/bin/python3; chmod +x .venv/bin/python3",
    ),
    "module on PYTHONPATH": ("python3 .claude/hooks/guard.py", f'echo "{MODULE}" > src/sitecustomize.py'),
    "module on a relative PYTHONPATH": ("python3 .claude/hooks/guard.py", f'echo "{MODULE}" > sitecustomize.py'),
}


@pytest.mark.parametrize("name", PLANTS)
def test_what_a_command_plants_for_a_trusted_hook_does_not_run(user: User, project: Path, name: str) -> None:
    command, plant = PLANTS[name]
    for folder in (".claude/hooks", "tools"):
        script(project, f"{folder}/guard.py", "import json, helper\n")
        script(project, f"{folder}/helper.py", "#" * 199 + "\n")
    (project / "Makefile").write_text("guard:\n\t@true\n")
    for folder in (".venv/bin", "src"):
        (project / folder).mkdir(parents=True)
    save_hooks(project / ".claude" / "settings.json", hooks_json("PreToolUse", command, "Bash"))
    assert user.agent("trust", "--yes", str(project)).exit_code == 0
    model = user.script(lead_call("run_command", command=plant), *CALL)
    words = ("run", "--model", model, "--output-format", "stream-json", "-C", str(project), "go")
    path = f"{project}/.venv/bin:{os.environ['PATH']}"
    result = user.agent(*words, **AUTO, PATH=path, PYTHONPATH=f"{project}/src:.:")
    assert statuses(result)[0] == "ok", result.stdout
    assert not (project / "escaped").exists()
