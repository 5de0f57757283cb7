"""The opening: true facts about the place of work, in few bytes, with names that stay data."""

import os
import subprocess
from pathlib import Path

import pytest

from agent.workspace.git_command import Repository, find_repository
from agent.workspace.git_state import GitLookup, count_changes, describe_head
from agent.workspace.opening import MAX_BYTES, Surroundings, build_opening, changed_opening, list_folder

UNHURRIED_S = 60.0


def surroundings(folder: Path, **changes: object) -> Surroundings:
    known: dict[str, object] = {
        "folder": folder,
        "environ": {"PATH": ""},
        "date": "2026-11-16",
        "command_timeout_s": 120.0,
        **changes,
    }
    return Surroundings(**known)  # type: ignore[arg-type]


def facts(opening: str) -> dict[str, str]:
    lines = opening.splitlines()
    assert (lines[0], lines[-1]) == ("<environment>", "</environment>")
    return dict(line.split(": ", 1) for line in lines[1:-1])


def git(folder: Path, *words: str) -> None:
    env = {**os.environ, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(("git", *identity, *words), cwd=folder, env=env, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--initial-branch", "trunk")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")
    return folder


def look(folder: Path) -> str:
    return GitLookup(folder, {"PATH": os.environ["PATH"]}, UNHURRIED_S).describe()


def test_it_tells_folder_files_date_and_limits(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "README.md").touch()
    (tmp_path / ".env").touch()
    told = facts(build_opening(surroundings(tmp_path, command_timeout_s=45.0)))
    assert told["folder"] == str(tmp_path)
    assert told["files"] == "README.md, src/, .env"
    assert told["today"] == "2026-11-16"
    assert "after 45 s" in told["time"]
    assert "need background" in told["time"]
    assert "git" not in told


def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path) -> None:
    assert facts(build_opening(surroundings(tmp_path)))["files"] == "(none)"


def test_a_full_folder_is_cut_with_the_true_number_of_the_rest(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / f"file-{number:03}.txt").touch()
    opening = build_opening(surroundings(tmp_path))
    shown, rest = facts(opening)["files"].rsplit(" and ", 1)
    assert rest == f"{500 - len(shown.split(', '))} more"
    assert MAX_BYTES - 20 < len(opening.encode()) <= MAX_BYTES


def test_it_is_short_even_if_every_name_is_long(tmp_path: Path) -> None:
    folder = tmp_path / ("ü" * 120) / ("ü" * 120) / ("ü" * 120)
    folder.mkdir(parents=True)
    git(folder, "init", "--initial-branch", "b" * 200)
    for number in range(300):
        (folder / f"{'é' * 100}{number}").touch()
    known = surroundings(
        folder,
        environ={"PATH": os.environ["PATH"]},
        extra_dirs=tuple(tmp_path / f"{'d' * 100}{number}" for number in range(20)),
        allow_net=tuple(f"{'h' * 40}.{number}.example.org" for number in range(20)),
    )
    opening = build_opening(known, GitLookup(folder, known.environ, UNHURRIED_S))
    assert len(opening.encode()) <= MAX_BYTES
    told = facts(opening)
    assert "…" in told["folder"]
    assert told["files"].endswith(" more")
    assert " and 19 more" in told["network"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("with space", '"with space"'),
        ("new\nline", '"new\\nline"'),
        ("</environment>x", None),
        ("<stdin>", '"‹stdin›"'),
        ("esc\x1b[31m", '"esc\\x1b[31m"'),
        ("hidden\u202etxt", '"hidden\\u202etxt"'),
        ("schön.txt", "schön.txt"),
    ],
)
def test_names_are_data(tmp_path: Path, name: str, shown: str | None) -> None:
    if shown is None:
        (tmp_path / "<").mkdir()
        (tmp_path / "<" / "environment>x").mkdir()
        opening = build_opening(surroundings(tmp_path / "<" / "environment>x"))
        assert opening.count("environment>") == 2
        return
    (tmp_path / name).touch()
    assert facts(build_opening(surroundings(tmp_path)))["files"] == shown


def test_a_name_that_is_not_text_is_shown_escaped(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad-\xff")).touch()
    assert list_folder(tmp_path, 100) == '"bad-\\udcff"'


def test_only_programs_that_commands_can_start_are_listed(tmp_path: Path) -> None:
    programs = tmp_path / "tool" / "bin"
    programs.mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere" / "node"
    elsewhere.parent.mkdir()
    for path in (programs / "make", programs / "docker", programs / "not-usual", elsewhere):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (programs / "node").symlink_to(elsewhere)
    (programs / "git").write_text("not executable")
    environ = {"PATH": f".:{programs}"}
    assert facts(build_opening(surroundings(tmp_path, environ=environ)))["programs"] == "make"
    on_host = surroundings(tmp_path, environ=environ, backend="host")
    assert facts(build_opening(on_host))["programs"] == "node, make, docker"


def test_the_host_has_no_sandbox_to_describe(tmp_path: Path) -> None:
    told = facts(build_opening(surroundings(tmp_path, backend="host")))
    assert told["commands"].startswith("run on this machine without a sandbox")
    assert told["network"] == "as on this machine"


def test_it_says_which_hosts_are_open_and_how_to_open_others(tmp_path: Path) -> None:
    def network(**changes: object) -> str:
        return facts(build_opening(surroundings(tmp_path, **changes)))["network"]

    assert network().startswith("off for commands, apart from localhost; nobody can open more")
    assert "asks the user to open it" in network(can_ask=True)
    assert network(allow_net=("example.com", ".example.org")).startswith("only example.com, .example.org for commands")


def test_further_folders_are_writable(tmp_path: Path) -> None:
    known = surroundings(tmp_path, extra_dirs=(Path("/data/other"),))
    assert facts(build_opening(known))["writable"].startswith("the folder, /data/other;")


def test_plan_mode_is_told_when_it_begins_and_when_it_ends(tmp_path: Path) -> None:
    usual, planning = (build_opening(surroundings(tmp_path, is_planning=mode)) for mode in (False, True))
    assert facts(planning)["writable"].startswith("nothing yet")
    assert list(facts(changed_opening(usual, planning))) == ["writable"]
    assert facts(changed_opening(f"{usual}\n{planning}", usual)) == {"writable": facts(usual)["writable"]}


def test_a_later_opening_tells_only_what_changed_apart_from_files_and_git(tmp_path: Path) -> None:
    first = build_opening(surroundings(tmp_path))
    assert changed_opening(first, first) == ""
    (tmp_path / "new").touch()
    assert changed_opening(first, build_opening(surroundings(tmp_path))) == ""
    later = build_opening(surroundings(tmp_path, date="2026-11-17"))
    assert changed_opening(first, later) == "<environment>\ntoday: 2026-11-17\n</environment>"


@pytest.mark.needs("git")
def test_branch_and_state_of_a_repository(repository: Path) -> None:
    assert look(repository) == "branch trunk, clean"
    (repository / "a.txt").write_text("changed\n")
    assert look(repository) == "branch trunk, 1 path changed or untracked"
    (repository / "new").mkdir()
    (repository / "new" / "b").touch()
    assert look(repository / "new") == "branch trunk, 2 paths changed or untracked"
    git(repository, "checkout", "--detach")
    assert look(repository).startswith("detached at ")


@pytest.mark.needs("git")
def test_a_work_tree_has_its_own_branch(repository: Path) -> None:
    git(repository, "worktree", "add", "-b", "side", "../side")
    assert look(repository.parent / "side") == "branch side, clean"


def test_outside_of_a_repository_there_is_no_git(tmp_path: Path) -> None:
    assert look(tmp_path) == ""


@pytest.mark.needs("git")
@pytest.mark.parametrize(
    "settings",
    [
        '[filter "x"]\n\tclean = touch {mark}; cat\n\trequired = true\n',
        "[core]\n\tfsmonitor = touch {mark}; true\n",
        "[core]\n\thooksPath = {hooks}\n",
        "[include]\n\tpath = {included}\n",
    ],
)
def test_looking_runs_nothing_that_the_repository_names(repository: Path, tmp_path: Path, settings: str) -> None:
    mark, hooks, included = tmp_path / "mark", tmp_path / "hooks", tmp_path / "included"
    hooks.mkdir()
    (hooks / "post-index-change").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (hooks / "post-index-change").chmod(0o755)
    included.write_text(f'[filter "x"]\n\tclean = touch {mark}; cat\n')
    with (repository / ".git" / "config").open("a") as config:
        config.write(settings.format(mark=mark, hooks=hooks, included=included))
    (repository / ".gitattributes").write_text("* filter=x\n")
    (repository / "a.txt").write_text("b\n")
    assert look(repository).startswith("branch trunk")
    assert not mark.exists()


def test_a_slow_git_costs_the_state_but_not_the_branch(repository: Path, tmp_path: Path) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    found = find_repository(repository)
    assert found is not None
    assert count_changes(found, {"PATH": f"{tmp_path}:/usr/bin:/bin"}, limit_s=0.05) is None
    assert describe_head(found) == "branch trunk"


def test_a_head_that_is_no_file_is_ignored(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "HEAD")
    assert describe_head(Repository(root=tmp_path, git_dir=tmp_path)) == ""
