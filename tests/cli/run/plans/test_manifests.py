"""Permission manifests: shown before a plan runs, and the ceiling of a run that nobody watches."""

import json
from pathlib import Path

import pytest

from tests.cli.pty_terminal import PtyTerminal
from tests.cli.terminal_user import (
    User,
    composer_reply,
    hand_out,
    lead_call,
    lead_reply,
    plan,
    step,
    step_call,
    step_reply,
)
from tests.docs.grammar import broken_rules

pytestmark = pytest.mark.slow

DELETE = {"tool": "delete_file", "args": {"path": "old.txt"}}
WRITE = {"tool": "write_file", "args": {"path": "notes/a.txt", "content": "x"}}


def write_plan(user: User, **steps: dict[str, object]) -> str:
    path = user.home / "plan.json"
    listed = [{"id": name, "title": name, **fields} for name, fields in steps.items()]
    path.write_text(json.dumps({"request": "tidy up", "steps": listed}))
    return str(path)


def write_manifest(user: User, text: str) -> str:
    path = user.home / "ci.toml"
    path.write_text(f"version = 1\n{text}\n")
    return str(path)


def work(user: User) -> Path:
    folder = user.home / "work"
    folder.mkdir(exist_ok=True)
    (folder / "old.txt").write_text("old")
    return folder


def test_the_manifest_of_a_plan_lets_exactly_that_plan_run(user: User) -> None:
    folder, file = work(user), write_plan(user, delete=DELETE, write=WRITE)
    sheet = str(user.home / "m.toml")
    assert user.agent("plan", "--plan", file, "--manifest", sheet).exit_code == 0
    text = Path(sheet).read_text()
    assert 'deletes = [\n  "old.txt",\n]' in text and 'writes = [\n  "notes/a.txt",\n]' in text
    ended = user.agent("run", "--plan", file, "-C", str(folder), "--manifest", sheet)
    assert (ended.exit_code, (folder / "old.txt").exists(), (folder / "notes/a.txt").exists()) == (0, False, True)
    other = write_plan(user, write=WRITE)
    refused = user.agent("run", "--plan", other, "-C", str(folder), "--manifest", sheet, "--output-format", "json")
    assert refused.exit_code == 57
    assert "is for another plan" in refused.stderr
    assert str(refused.document["missing"]["plan"]).startswith("sha256:")  # type: ignore[index]


def test_without_a_file_name_the_manifest_is_printed(user: User) -> None:
    file = write_plan(user, delete=DELETE)
    printed = user.agent("plan", "--manifest", "--plan", file)
    assert printed.exit_code == 0
    assert "\nversion = 1\n" in printed.stdout and '"old.txt"' in printed.stdout
    data = user.agent("plan", "--plan", file, "--output-format", "json").document
    assert data["manifest"]["deletes"] == ["old.txt"]  # type: ignore[index]


def test_a_plan_that_needs_more_runs_nothing_and_prints_the_whole_difference(user: User) -> None:
    folder, file = work(user), write_plan(user, write=WRITE, delete=DELETE)
    manifest = write_manifest(user, 'writes = ["src"]')
    ended = user.agent("run", "--plan", file, "-C", str(folder), "--manifest", manifest, "--output-format", "json")
    assert (ended.exit_code, (folder / "notes").exists(), (folder / "old.txt").exists()) == (57, False, True)
    change = 'writes = [\n  "src",\n  "notes/a.txt",\n]\ndeletes = [\n  "old.txt",\n]'
    assert f"hint: change these lines of {manifest}:\n{change}" in ended.stderr
    missing = ended.document["missing"]
    assert (missing["writes"], missing["deletes"]) == (["notes/a.txt"], ["old.txt"])  # type: ignore[index]
    # The change, pasted, is enough.
    Path(manifest).write_text(f"version = 1\n{change}\n")
    assert user.agent("run", "--plan", file, "-C", str(folder), "--manifest", manifest).exit_code == 0


def test_a_manifest_is_the_ceiling_of_a_run_with_a_lead(user: User) -> None:
    user.environ["AGENT_PLANNING"] = "auto"
    folder = work(user)
    model = user.script(
        lead_call("write_file", path="src/a.txt", content="a"),
        lead_call("write_file", path="other.txt", content="b"),
        lead_reply("done"),
    )
    manifest = write_manifest(user, 'writes = ["src"]')
    words = ("run", "go", "--model", model, "-C", str(folder), "--manifest", manifest, "--output-format", "stream-json")
    ended = user.agent(*words)
    assert (ended.exit_code, (folder / "src/a.txt").exists(), (folder / "other.txt").exists()) == (57, True, False)
    assert "'other.txt' is not in the manifest" in ended.stderr + ended.stdout
    assert broken_rules(ended.events) == []
    assert [event["by"] for event in ended.events if event["type"] == "manifest"] == ["file"]
    assert ended.events[-1]["missing"]["writes"] == ["other.txt"]  # type: ignore[index]


def test_a_run_under_a_manifest_is_resumed_only_under_one(user: User) -> None:
    user.environ.update(AGENT_PLANNING="auto", AGENT_APPROVAL_MODE="yolo")
    folder, manifest = work(user), write_manifest(user, 'writes = ["src"]')
    model = user.script(lead_call("write_file", path="other.txt", content="b"), lead_reply("done"))
    first = user.agent("run", "go", "--model", model, "-C", str(folder), "--manifest", manifest)
    assert (first.exit_code, f"--manifest {manifest}" in first.stderr) == (57, True)
    again = user.script(lead_call("write_file", path="other.txt", content="b"), lead_reply("done"))
    for words in (("resume",), ("run", "-c")):
        refused = user.agent(*words, "--model", again, "-C", str(folder))
        assert (refused.exit_code, (folder / "other.txt").exists()) == (2, False)
        assert f"was limited by the manifest {manifest}" in refused.stderr
    command = json.dumps({"type": "resume", "run_id": first.stderr.rpartition("agent resume ")[2].split()[0]})
    streams = ("--input-format", "stream-json", "--output-format", "stream-json")
    by_program = user.agent("run", *streams, "--model", again, "-C", str(folder), stdin=command + "\n")
    assert "was limited by the manifest" in str(by_program.events) and not (folder / "other.txt").exists()
    write_manifest(user, 'writes = ["other.txt"]')
    assert user.agent("resume", "--model", again, "-C", str(folder), "--manifest", manifest).exit_code == 0
    assert (folder / "other.txt").exists()


def test_no_manifest_lets_a_run_schedule_another_one(user: User) -> None:
    user.environ["AGENT_PLANNING"] = "auto"
    (user.data / "queue").mkdir(parents=True, mode=0o700)
    call = {"action": "add", "type": "command", "content": "make", "delay_minutes": 5}
    model = user.script(lead_call("schedule_task", **call), lead_reply("done"))
    manifest = write_manifest(user, 'programs = ["make"]\ntools = ["schedule_task"]')
    ended = user.agent("run", "go", "--model", model, "-C", str(work(user)), "--manifest", manifest)
    assert ended.exit_code == 57
    assert "schedule_task add make [denied" in ended.stderr and "change these lines" not in ended.stderr
    assert user.agent("tools", "call", "schedule_task", "action=list").stdout == "(nothing is scheduled)\n"


def test_with_deny_the_run_goes_on_and_lists_everything_at_its_end(user: User) -> None:
    user.environ["AGENT_PLANNING"] = "auto"
    folder = work(user)
    model = user.script(
        lead_call("write_file", path="a.txt", content="a"),
        lead_call("run_command", command="git push"),
        lead_reply("I could not."),
    )
    manifest = write_manifest(user, "")
    words = ("run", "go", "--model", model, "-C", str(folder), "--manifest", manifest, "--on-approval", "deny")
    ended = user.agent(*words, "--output-format", "json")
    assert ended.exit_code == 57
    missing = ended.document["missing"]
    assert (missing["writes"], missing["programs"]) == (["a.txt"], ["git push"])  # type: ignore[index]
    assert 'programs = [\n  "git push",\n]' in ended.stderr


def test_a_planners_plan_is_compared_with_the_manifest_before_its_steps_start(user: User) -> None:
    folder = work(user)
    model = user.script(plan(step("s1", writes=["b.txt"])), step_reply("s1", "done"))
    words = ("run", "go", "--model", model, "-C", str(folder), "--manifest", write_manifest(user, 'writes = ["a.txt"]'))
    ended = user.agent(*words, "--output-format", "stream-json")
    assert ended.exit_code == 57
    assert not [event for event in ended.events if event["type"] == "step.started"]


def test_rules_and_settings_do_not_widen_the_manifest(user: User) -> None:
    folder, file = work(user), write_plan(user, delete=DELETE)
    user.environ.update(AGENT_APPROVAL_MODE="yolo", AGENT_ALLOW="delete_file")
    ended = user.agent("run", "--plan", file, "-C", str(folder), "--manifest", write_manifest(user, ""))
    assert (ended.exit_code, (folder / "old.txt").exists()) == (57, True)


@pytest.mark.parametrize("flags", [("--allow", "git push"), ("--allow-net", "a.org"), ("--approval-mode", "yolo")])
def test_flags_that_allow_contradict_a_manifest(user: User, flags: tuple[str, ...]) -> None:
    ended = user.agent("run", "go", "--manifest", write_manifest(user, ""), *flags)
    assert (ended.exit_code, f"{flags[0]} cannot be used with --manifest" in ended.stderr) == (2, True)


def test_an_invalid_manifest_is_refused_before_anything_runs(user: User) -> None:
    ended = user.agent("run", "go", "--model", user.script(), "--manifest", write_manifest(user, "program = []"))
    assert (ended.exit_code, "did you mean programs?" in ended.stderr) == (42, True)


def test_a_key_that_is_not_named_is_not_used(user: User) -> None:
    user.environ["OPENAI_API_KEY"] = "sk-0123456789abcdef0123456789"
    ended = user.agent("run", "go", "--model", "gpt-5", "--scratch", "--manifest", write_manifest(user, ""))
    assert (ended.exit_code, 'secrets = [\n  "OPENAI_API_KEY",\n]' in ended.stderr) == (57, True)


def open_terminal(user: User, *words: str) -> PtyTerminal:
    return PtyTerminal(user, "run", "-C", str(user.home / "work"), "--plain", *words)


def test_on_a_terminal_one_sheet_is_approved_for_the_whole_plan(user: User) -> None:
    folder = work(user)
    terminal = open_terminal(user, "--plan", write_plan(user, write=WRITE, delete=DELETE))
    shown = terminal.wait_for("[y] once")
    assert "allow all of this for the plan?" in shown and '"notes/a.txt"' in shown and '"old.txt"' in shown
    terminal.send_line("y")
    exit_code, rest = terminal.wait_exit()
    assert (exit_code, (folder / "old.txt").exists(), "allow this?" in rest) == (0, False, False)


def test_a_declined_sheet_runs_nothing(user: User) -> None:
    folder = work(user)
    terminal = open_terminal(user, "--plan", write_plan(user, write=WRITE, delete=DELETE))
    terminal.wait_for("[y] once")
    terminal.send_line("n")
    exit_code, rest = terminal.wait_exit()
    assert (exit_code, (folder / "old.txt").exists(), (folder / "notes").exists()) == (57, True, False)
    assert "declined" in rest


def test_an_edited_sheet_is_what_applies(user: User) -> None:
    folder = work(user)
    user.environ["EDITOR"] = "sed -i s/old.txt/other.txt/"
    terminal = open_terminal(user, "--plan", write_plan(user, write=WRITE, delete=DELETE))
    terminal.wait_for("[y] once")
    terminal.send_line("e")
    # What is no longer on the sheet is asked about.
    assert "delete_file old.txt" in terminal.wait_for("[y] once")
    terminal.send_line("n")
    exit_code, _ = terminal.wait_exit()
    assert (exit_code, (folder / "old.txt").exists(), (folder / "notes/a.txt").exists()) == (57, True, True)


def test_a_sheet_is_shown_for_the_steps_that_a_lead_hands_out(user: User) -> None:
    user.environ["AGENT_PLANNING"] = "auto"
    folder = work(user)
    names = ("a", "b")
    model = user.script(
        hand_out(*({"id": name, "instruction": f"Write {name}.", "writes": [f"{name}.txt"]} for name in names)),
        *(reply for name in names for reply in (step_call(name, "write_file", path=f"{name}.txt", content=name),)),
        *(step_reply(name, f"{name} is there") for name in names),
        lead_reply("all there"),
    )
    terminal = open_terminal(user, "write both", "--model", model)
    assert '"a.txt"' in terminal.wait_for("[y] once")
    terminal.send_line("y")
    exit_code, rest = terminal.wait_exit()
    assert (exit_code, "allow this?" in rest, sorted(path.name for path in folder.glob("[ab].txt"))) == (
        0,
        False,
        ["a.txt", "b.txt"],
    )


def test_one_need_is_asked_about_when_it_comes_up(user: User) -> None:
    work(user)
    model = user.script(
        plan(step("s1", writes=["a.txt"])),
        step_call("s1", "write_file", path="a.txt", content="a"),
        step_reply("s1", "done"),
        composer_reply("done"),
    )
    terminal = open_terminal(user, "go", "--model", model)
    assert "write_file a.txt" in terminal.wait_for("[y] once")
    terminal.send_line("y")
    assert terminal.wait_exit()[0] == 0
