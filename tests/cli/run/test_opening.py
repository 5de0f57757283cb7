"""The first request tells the model where it is; a recording made elsewhere still replays."""

from pathlib import Path

import pytest

from tests.cli.terminal_user import User, plan, step

pytestmark = pytest.mark.slow


def test_planner_and_steps_know_the_folder_its_files_and_the_limits_of_commands(user: User) -> None:
    folder = user.home / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "notes.txt").touch()
    opening = rf"(?s)<environment>\nfolder: {folder}\nfiles: notes.txt, src/\n.*after 30 s.*</environment>"
    model = user.script(
        {**plan(step("s1")), "match": {"purpose": "planner", "contains": opening}},
        {"match": {"step": "s1", "contains": opening}, "text": "seen"},
    )
    options = ("--set", "command_timeout_s=30", "-C", str(folder))
    assert user.agent("run", "do it", "--model", model, *options).stdout == "seen\n"


def test_a_recording_replays_in_another_folder_with_other_files(user: User, tmp_path: Path) -> None:
    for name in ("one", "other"):
        (user.home / name).mkdir()
        (user.home / name / f"{name}.txt").touch()
    tape = str(tmp_path / "tape.jsonl")
    model = user.script(plan(step("s1")), {"match": {"step": "s1"}, "text": "done"})
    user.agent("run", "do it", "--model", model, "--record", tape, "-C", str(user.home / "one"))
    replayed = user.agent("run", "do it", "--replay", tape, "-C", str(user.home / "other"))
    assert (replayed.stdout, replayed.exit_code) == ("done\n", 0)
