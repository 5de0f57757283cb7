"""Hook scripts as people have written them for Claude Code work unchanged."""

import json
from pathlib import Path

import pytest

from tests.cli.run.hooks.hook_files import hooks_json, script, user_hooks
from tests.cli.terminal_user import ProgramResult, User, lead_call, lead_reply

pytestmark = pytest.mark.slow
AUTO = {"AGENT_PLANNING": "auto", "AGENT_APPROVAL_MODE": "yolo"}

# A guard, with jq where it is installed and Python otherwise.
BASH_GUARD = r"""#!/usr/bin/env bash
set -euo pipefail
input=$(cat)
if command -v jq >/dev/null; then
  tool=$(jq -r '.tool_name' <<<"$input"); command=$(jq -r '.tool_input.command // empty' <<<"$input")
else
  tool=$(python3 -c 'import json,sys; print(json.load(sys.stdin)["tool_name"])' <<<"$input")
  command=$(python3 -c 'import json,sys; print(json.load(sys.stdin)["tool_input"].get("command", ""))' <<<"$input")
fi
[[ "$tool" == "Bash" ]] || exit 0
if grep -qE 'rm[[:space:]]+-[a-z]*r[a-z]*f' <<<"$command"; then
  echo "rm -rf is not allowed here; move it to trash/ instead" >&2
  exit 2
fi
exit 0
"""

# A formatter that reads the file it is told about, and objects to what it cannot format.
FORMATTER = r"""#!/usr/bin/env python3
import json, pathlib, sys

data = json.load(sys.stdin)
path = data.get("tool_input", {}).get("file_path", "")
if not path.endswith(".txt"):
    sys.exit(0)
assert data["tool_response"].get("filePath", path) == path
file = pathlib.Path(path)
text = file.read_text()
file.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n")
if "\t" in text:
    print(json.dumps({"decision": "block", "reason": f"{file.name}: tabs are not allowed"}))
"""

# A notifier for prompts and stops, which writes where others would call notify-send.
NOTIFIER = r"""#!/usr/bin/env bash
input=$(cat)
event=$(python3 -c 'import json,sys; print(json.load(sys.stdin)["hook_event_name"])' <<<"$input")
case "$event" in
  UserPromptSubmit) echo "Remember: today is a release day." ;;
  Stop)
    active=$(python3 -c 'import json,sys; print(json.load(sys.stdin)["stop_hook_active"])' <<<"$input")
    [[ "$active" == "True" ]] && exit 0 ;;
esac
echo "$event" >> "$CLAUDE_PROJECT_DIR/notified.log"
"""


def run(user: User, *replies: object) -> ProgramResult:
    model = user.script(*replies)
    return user.agent("run", "--model", model, "--output-format", "stream-json", "-C", str(user.home), "go", **AUTO)


def tool_outputs(result: ProgramResult) -> list[tuple[object, str]]:
    completed = [event for event in result.events if event["type"] == "tool.completed"]
    return [(event["status"], str(event["output"])) for event in completed]


def test_a_bash_guard_stops_rm_rf_and_tells_the_model_why(user: User) -> None:
    guard = script(user.home, "guards/guard.sh", BASH_GUARD)
    user_hooks(user, hooks_json("PreToolUse", str(guard), "Bash"))
    (user.home / "build").mkdir()
    calls = [lead_call("run_command", command="rm -rf build"), lead_call("run_command", command="ls -d build")]
    result = run(user, *calls, lead_reply("Done."))
    assert tool_outputs(result) == [
        ("denied", "Denied by the hook guard.sh: rm -rf is not allowed here; move it to trash/ instead"),
        ("ok", "build"),
    ]


def test_a_formatter_runs_after_each_edit_and_its_objection_reaches_the_model(user: User) -> None:
    formatter = script(user.home, "format.py", FORMATTER)
    user_hooks(user, hooks_json("PostToolUse", f"python3 {formatter}", "Edit|MultiEdit|Write"))
    patch = "*** Begin Patch\n*** Add File: c.txt\n+one  \n*** End Patch"
    result = run(
        user,
        lead_call("write_file", path="a.txt", content="one  \ntwo\n"),
        lead_call("edit_file", path="a.txt", old_text="two", new_text="two\t "),
        lead_call("apply_patch", patch=patch),
        lead_reply("Done."),
    )
    outputs = tool_outputs(result)
    assert [status for status, _ in outputs] == ["ok", "ok", "ok"]
    assert "<hook>" not in outputs[0][1]
    assert "<hook>\na.txt: tabs are not allowed\n</hook>" in outputs[1][1]
    assert (user.home / "a.txt").read_text() == "one\ntwo\n"
    assert (user.home / "c.txt").read_text() == "one\n"


def test_a_notifier_adds_to_the_prompt_and_hears_of_the_end(user: User) -> None:
    notifier = script(user.home, "notify.sh", NOTIFIER)
    command = f'"{notifier}"'
    user_hooks(user, hooks_json("UserPromptSubmit", command), hooks_json("Stop", command))
    result = run(user, lead_reply("Done."))
    assert (user.home / "notified.log").read_text().split() == ["UserPromptSubmit", "Stop"]
    contexts = [event["content"] for event in result.events if event.get("role") == "context"]
    assert "<hook>\nRemember: today is a release day.\n</hook>" in str(contexts[0])
    assert result.exit_code == 0


def test_a_stop_hook_makes_the_agent_continue(user: User) -> None:
    text = r"""#!/usr/bin/env python3
import json, sys
if not json.load(sys.stdin)["stop_hook_active"]:
    print(json.dumps({"decision": "block", "reason": "Run the tests first."}))
"""
    user_hooks(user, hooks_json("Stop", str(script(user.home, "stop.py", text))))
    result = run(user, lead_reply("Done."), lead_reply("Now it is really done."))
    said = [event["content"] for event in result.events if event.get("role") == "user"]
    assert said[-1] == "Run the tests first."
    assert result.events[-1]["result"] == "Now it is really done."


def test_the_input_of_a_hook_has_the_fields_that_scripts_read(user: User) -> None:
    log = user.home / "seen.jsonl"
    save = f"tee -a {log} >/dev/null; echo >> {log}"
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    user_hooks(user, *(hooks_json(event, save) for event in events))
    (user.home / "old.txt").write_text("old")
    run(
        user,
        lead_call("run_command", command="echo hi", timeout_s=5),
        lead_call("edit_file", path="old.txt", old_text="old", new_text="new"),
        lead_call("delete_file", path="old.txt"),
        lead_reply("Done."),
    )
    seen = [json.loads(line) for line in log.read_text().splitlines() if line.strip()]
    shared = {"session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name"}
    assert all(shared <= entry.keys() for entry in seen)
    assert Path(seen[0]["transcript_path"]).is_file()
    names = [entry["hook_event_name"] for entry in seen]
    assert names == [
        *("SessionStart", "UserPromptSubmit"),
        *("PreToolUse", "PostToolUse") * 2,
        *("PreToolUse", "PreToolUse"),
        *("Stop", "SessionEnd"),
    ]
    by_tool = {(entry["hook_event_name"], entry.get("tool_name")): entry for entry in seen}
    assert seen[0]["source"] == "startup" and seen[1]["prompt"] == "go"
    assert by_tool["PreToolUse", "Bash"]["permission_mode"] == "bypassPermissions"
    assert seen[2]["tool_input"] | {"description": ""} == seen[2]["tool_input"]
    assert (seen[2]["tool_input"]["command"], seen[2]["tool_input"]["timeout"]) == ("echo hi", 5000)
    assert seen[3]["tool_response"]["stdout"] == "hi"
    old = str(user.home / "old.txt")
    edit = {"file_path": old, "old_string": "old", "new_string": "new", "replace_all": False}
    assert by_tool["PreToolUse", "Edit"]["tool_input"] == edit
    assert by_tool["PreToolUse", "Write"]["tool_input"] == {"file_path": old, "content": ""}
    assert seen[-2]["stop_hook_active"] is False


@pytest.mark.parametrize(
    ("changed", "printed", "failed"),
    [("python3 -c 'print(2)'", "2", False), ("echo other", "", True)],
)
def test_code_is_a_command_for_hooks_which_may_change_it(
    user: User, changed: str, printed: str, *, failed: bool
) -> None:
    text = f"""#!/usr/bin/env python3
import json, sys
given = json.load(sys.stdin)
assert given["tool_input"]["command"] == "python3 -c 'print(1)'", given
answer = {{"hookEventName": "PreToolUse", "updatedInput": {{"command": {changed!r}}}}}
print(json.dumps({{"hookSpecificOutput": answer}}))
"""
    user_hooks(user, hooks_json("PreToolUse", str(script(user.home, "change.py", text)), matcher="Bash"))
    result = run(user, lead_call("run_python", code="print(1)"), lead_reply("Done."))
    (ended,) = [event for event in result.events if event["type"] == "tool.completed"]
    assert (ended["status"] != "ok") is failed
    assert printed in str(ended["output"])
