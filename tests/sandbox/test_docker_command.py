"""`agent docker`, `agent doctor` and `--image`, as a user types them, with a real engine."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.terminal_user import ProgramResult, User, lead_call, lead_reply
from tests.docker_engine import IMAGE, OWNER, docker
from tests.programs import needs

pytestmark = [pytest.mark.slow, needs("docker", "dockerd")]


@pytest.fixture
def user(tmp_path: Path) -> User:
    home = tmp_path / "home"
    home.mkdir()
    return User(home=home)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder of an ordinary user, which root may work in."""
    folder = tmp_path / "project"
    folder.mkdir()
    os.chown(folder, OWNER, OWNER)
    return folder


def agent(user: User, engine: Path, *words: str) -> ProgramResult:
    return user.agent(*words, DOCKER_HOST=f"unix://{engine}")


def test_an_image_is_built_on_one_that_the_engine_has_and_used_by_default(
    user: User, workspace: Path, engine_socket: Path
) -> None:
    built = agent(user, engine_socket, "docker", "build", "--from", IMAGE)
    assert (built.exit_code, built.stdout) == (0, ""), built
    assert built.stderr.endswith(f"built windlass-commands on {IMAGE}\n")
    found = agent(user, engine_socket, "exec", "--backend", "docker", "-C", str(workspace), "--", "git --version")
    assert (found.exit_code, found.stdout[:11]) == (0, "git version"), found
    label = docker(engine_socket, "inspect", "-f", '{{index .Config.Labels "windlass.base"}}', "windlass-commands")
    assert label == f"{IMAGE}\n"
    docker(engine_socket, "rmi", "-f", "windlass-commands")


def test_a_name_for_the_image_can_be_given(user: User, engine_socket: Path) -> None:
    built = agent(user, engine_socket, "docker", "build", "--from", IMAGE, "--image", "mine:2", "--json")
    assert built.exit_code == 0, built
    image = json.loads(built.stdout)
    assert (image["name"], image["base"]) == ("mine:2", IMAGE)
    assert docker(engine_socket, "inspect", "-f", "{{.Id}}", "mine:2").strip() == image["id"]


def test_without_a_registry_the_user_is_told_what_to_build_on(user: User, engine_socket: Path) -> None:
    ended = agent(user, engine_socket, "docker", "build")
    assert ended.exit_code == 44
    assert "error: no registry has the image debian:bookworm-slim, or none can be reached" in ended.stderr
    assert "hint: --from IMAGE builds on an image that the engine already has" in ended.stderr


def test_the_containers_of_a_user_are_listed_and_removed(user: User, workspace: Path, engine_socket: Path) -> None:
    flags = ("--backend", "docker", "--image", IMAGE, "-C", str(workspace))
    assert agent(user, engine_socket, "exec", *flags, "--", "true").exit_code == 0
    listed = [
        one
        for one in json.loads(agent(user, engine_socket, "docker", "list", "--json").stdout)
        if one["workspace"] == str(workspace)
    ]
    assert [(one["state"], one["image"]) for one in listed] == [("exited", IMAGE)]
    assert str(workspace) in agent(user, engine_socket, "docker", "list").stdout
    removed = agent(user, engine_socket, "docker", "rm")
    assert (removed.exit_code, removed.stderr[:9]) == (0, "removed: ")
    assert json.loads(agent(user, engine_socket, "docker", "list", "--json").stdout) == []


def test_a_run_works_in_the_image_it_is_given(user: User, workspace: Path, engine_socket: Path) -> None:
    model = user.script(
        lead_call("run_command", command="id -u; touch made"),
        lead_call("run_python", code="print(6 * 7)"),
        lead_call("read_file", path="made"),
        lead_reply("Done."),
    )
    flags = ("--backend", "docker", "--image", IMAGE, "-C", str(workspace), "--planning", "auto")
    ended = agent(user, engine_socket, "run", "go", "--model", model, *flags, "--output-format", "stream-json")
    outputs = [event["output"] for event in ended.events if event["type"] == "tool.completed"]
    assert outputs[:2] == [str(OWNER), "42"], ended
    assert (ended.exit_code, (workspace / "made").stat().st_uid) == (0, OWNER)


def test_an_image_that_is_missing_ends_with_44(user: User, workspace: Path, engine_socket: Path) -> None:
    flags = ("--backend", "docker", "--image", "no-such:1", "-C", str(workspace))
    ended = agent(user, engine_socket, "exec", *flags, "--", "true")
    assert ended.exit_code == 44
    assert "error: there is no image no-such:1" in ended.stderr


def test_doctor_tells_engine_version_rights_and_image(user: User, engine_socket: Path) -> None:
    said = agent(user, engine_socket, "doctor", "--json").stdout
    (found,) = [one for one in json.loads(said)["findings"] if one["name"] == "docker"]
    version = docker(engine_socket, "version", "-f", "{{.Server.Version}}").strip()
    assert found["state"] == "note"
    assert found["detail"].startswith(
        f"Docker {version} (not rootless) at {engine_socket}; there is no image windlass-commands"
    )
    ready = user.agent("doctor", DOCKER_HOST=f"unix://{engine_socket}", AGENT_DOCKER_IMAGE=IMAGE).stdout
    assert f"image {IMAGE}" in ready


def test_a_follow_up_runs_in_the_same_image(user: User, workspace: Path, engine_socket: Path) -> None:
    model = user.script(lead_reply("Done."))
    flags = ("--model", model, "-C", str(workspace), "--planning", "auto", "--output-format", "stream-json")
    agent(user, engine_socket, "run", "go", *flags, "--backend", "docker", "--image", IMAGE)
    again = agent(user, engine_socket, "run", "more", "-c", *flags)
    assert (again.events[0]["backend"], again.events[0]["image"]) == ("docker", IMAGE)
    elsewhere = agent(user, engine_socket, "run", "more", "-c", *flags, "--backend", "sandbox")
    assert (elsewhere.events[0]["backend"], "image" in elsewhere.events[0]) == ("sandbox", False)
