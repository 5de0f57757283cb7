"""Skills: listed to the model, loaded when it asks, with scripts that run in the sandbox."""

from pathlib import Path

import pytest

from tests.cli.terminal_user import ProgramResult, User, lead_call, lead_reply

pytestmark = pytest.mark.slow
SKILL = """---
name: {name}
description: >
  Counts words. Use when asked
  how long a text is.
license: MIT
metadata:
  author: "me"
---

# Counting

Run `sh scripts/count.sh FILE`, as references/how.md says.
"""


def write_skill(folder: Path, text: str = "") -> Path:
    (folder / "scripts").mkdir(parents=True)
    (folder / "references").mkdir()
    (folder / "SKILL.md").write_text(text or SKILL.format(name=folder.name))
    (folder / "scripts/count.sh").write_text('#!/bin/sh\nwc -w < "$1"\n')
    (folder / "scripts/count.sh").chmod(0o755)
    (folder / "references/how.md").write_text("carefully")
    return folder


def skills_of(user: User) -> Path:
    return user.home / ".config/agent/skills"


def run(user: User, *replies: dict[str, object], words: tuple[str, ...] = ("-C", ".")) -> ProgramResult:
    model = user.script(*replies)
    arguments = ("run", "how long is it?", "--model", model, "--output-format", "stream-json", "--session", "one")
    return user.agent(*arguments, *words, AGENT_PLANNING="auto")


def outputs(ended: ProgramResult) -> list[str]:
    return [str(event["output"]) for event in ended.events if event["type"] == "tool.completed"]


def test_the_model_loads_a_skill_and_runs_its_script_in_the_sandbox(user: User) -> None:
    write_skill(skills_of(user) / "count-words")
    (user.home / "work").mkdir()
    (user.home / "work/text.txt").write_text("one two three")
    staged = user.data / "sessions/one/outputs/skills/count-words"
    ended = run(
        user,
        lead_call("skill", name="count-words"),
        lead_call("run_command", command=f"{staged}/scripts/count.sh text.txt"),
        lead_call("read_file", path=f"{staged}/references/how.md"),
        lead_reply("three words"),
        words=("-C", "work"),
    )
    loaded, counted, read = outputs(ended)
    assert ended.exit_code == 0, ended.stderr
    assert '<skill title="count-words">\n# Counting' in loaded
    assert f"Its files are in {staged}" in loaded and "scripts/count.sh" in loaded
    assert (counted.strip(), "carefully" in read) == ("3", True)
    # The user's own folder is left alone.
    assert [path.name for path in (user.home / "work").iterdir()] == ["text.txt"]


def test_a_skill_is_staged_in_the_workspace_of_the_session(user: User) -> None:
    write_skill(skills_of(user) / "count-words")
    ended = run(user, lead_call("skill", name="count-words"), lead_reply("ok"), words=("--scratch",))
    assert ended.exit_code == 0, ended.stderr
    assert (user.data / "sessions/one/workspace/.skills/count-words/scripts/count.sh").is_file()


def test_without_skills_there_is_no_skill_tool(user: User) -> None:
    assert "skill" not in list(run(user, lead_reply("ok")).events[0]["tools"])  # type: ignore[call-overload]


def test_a_skill_given_by_path_is_part_of_the_request(user: User) -> None:
    write_skill(user.home / "mine/count-words")
    ended = run(user, lead_reply("ok"), words=("-C", ".", "--skill", "mine/count-words", "--bare"))
    context = "".join(str(event["content"]) for event in ended.events if event.get("role") == "context")
    assert '<skill title="count-words">' in context
    assert ended.exit_code == 0


@pytest.mark.parametrize(
    ("given", "problem"), [("cuont-words", "did you mean count-words?"), ("no/such", "no SKILL.md")]
)
def test_a_skill_that_does_not_exist_stops_the_run(user: User, given: str, problem: str) -> None:
    write_skill(skills_of(user) / "count-words")
    ended = user.agent("run", "x", "--model", user.script(lead_reply("never")), "--skill", given)
    assert (ended.exit_code, problem in ended.stderr) == (42, True)


def test_a_broken_skill_is_named_and_the_run_continues(user: User) -> None:
    write_skill(skills_of(user) / "broken", "---\nname: broken\n---\nno description")
    ended = run(user, lead_reply("ok"))
    assert (ended.exit_code, len(list(ended.events[0]["warnings"]))) == (0, 1)  # type: ignore[call-overload]


def test_skills_in_a_workspace_are_not_used(user: User) -> None:
    for folder in (".claude/skills/evil", ".skills/evil", "skills/evil", ".agents/skills/evil"):
        write_skill(user.home / "work" / folder)
    assert "skill" not in list(run(user, lead_reply("ok"), words=("-C", "work")).events[0]["tools"])  # type: ignore[call-overload]


def test_skills_of_claude_are_used_if_wanted(user: User) -> None:
    write_skill(user.home / ".claude/skills/count-words")
    assert user.agent("skills", "list").stdout == "(no skills)\n"
    user.agent("config", "set", "claude_skills", "true")
    assert user.agent("skills", "list").stdout.split()[:2] == ["count-words", "~/.claude"]


def test_a_plugin_brings_skills_and_commands(user: User) -> None:
    plugin = user.home / ".config/agent/plugins/texts"
    write_skill(plugin / "skills/count-words")
    (plugin / "commands").mkdir()
    (plugin / "commands/shorten.md").write_text("Shorten $1 to $2 words.")
    (plugin / "plugin.py").write_text("")
    assert user.agent("skills", "list").stdout.split()[:3] == ["count-words", "plugin", "texts"]
    ended = user.agent(
        "run", "a.txt 'ten or 20'", "--command", "shorten", "--model", user.script(lead_reply("ok")), "--session", "s",
        AGENT_PLANNING="auto",
    )  # fmt: skip
    assert ended.exit_code == 0, ended.stderr
    assert "Shorten a.txt to ten or 20 words." in user.agent("runs", "show", "last").stdout


def test_a_new_skill_passes_its_check_and_a_wrong_one_does_not(user: User) -> None:
    assert user.agent("skills", "new", "count-words").exit_code == 0
    checked = user.agent("skills", "check", "count-words")
    assert (checked.exit_code, checked.stdout) == (0, "count-words: ok\n")
    assert "Counts the words" in user.agent("skills", "show", "count-words").stdout
    write_skill(user.home / "Other", SKILL.format(name="two--words").replace("how.md", "gone.md") + "\nx: 1")
    wrong = user.agent("skills", "check", "./Other")
    assert (wrong.exit_code, wrong.stdout.splitlines()) == (
        1,
        [
            "two--words: name: 'two--words' is not lowercase letters, digits and single hyphens, at most 64",
            "two--words: name: 'two--words' is not the name of its folder, 'Other'",
            "two--words: references/gone.md: no such file",
        ],
    )


def test_without_a_name_all_skills_are_checked(user: User) -> None:
    assert user.agent("skills", "new", "count-words").exit_code == 0
    assert user.agent("skills", "check").stdout == "count-words: ok\n"
    broken = user.home / ".config/agent/skills/broken"
    broken.mkdir()
    (broken / "SKILL.md").write_text("no front matter")
    checked = user.agent("skills", "check")
    assert (checked.exit_code, checked.stdout) == (1, "count-words: ok\n")
    assert "has no front matter" in checked.stderr


def test_a_command_of_the_user_runs_without_a_prompt(user: User) -> None:
    folder = user.home / ".config/agent/commands"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("---\ndescription: Review.\n---\nReview $ARGUMENTS with care.\n")
    (folder / "plain.md").write_text("Tidy up.")
    for name, task, request in (("review", "a $1", "Review a $1 with care."), ("plain", "now", "Tidy up.\n\nnow")):
        model = user.script(lead_reply("ok"))
        ended = user.agent(
            "run", task, "--command", name, "--model", model, "--output-format", "stream-json", AGENT_PLANNING="auto"
        )
        assert [event["content"] for event in ended.events if event.get("role") == "user"] == [request]
    missing = user.agent("run", "--command", "reveiw", "--model", user.script())
    assert (missing.exit_code, "did you mean review?" in missing.stderr) == (42, True)
