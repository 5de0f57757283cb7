"""TaskDispatcher: the order of its stages, and what a failure of each of them leaves."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.service.dispatcher import TaskDispatcher
from agent.service.staging import AttachmentStager, ConfigResolver, PreparedTask, SkillStager, config_as_json
from agent.service.task import Task, TaskOutcome, TaskRequest, TaskState
from agent.sessions.store import SessionStore
from agent.vocabulary.errors import AgentError, InputError
from agent.vocabulary.task_config import TaskConfig
from tooling.approvals.manifest import Manifest

DONE = TaskOutcome(state=TaskState.COMPLETED, exit_code=0, answer="ok")


class Stages:
    """Records the order of stages, and fails at one of them."""

    def __init__(self, fails_at: str = "") -> None:
        self.fails_at = fails_at
        self.seen: list[str] = []

    def enter(self, name: str) -> None:
        self.seen.append(name)
        if name == self.fails_at:
            raise InputError(f"{name} went wrong")


class Fakes:
    """All parts of a dispatcher."""

    def __init__(self, stages: Stages, task: Task) -> None:
        self.stages = stages
        self.task = task
        self.released: list[bool] = []

    async def get(self, task_id: str) -> Task:
        return self.task

    def resolve(self, task: Task, config: TaskConfig) -> PreparedTask:
        self.stages.enter("config")
        return PreparedTask(task=task, flags=(), config=config)

    async def acquire(self, task: Task) -> tuple[str, str | None]:
        self.stages.enter("executor")
        return "local:", "exec-1"

    async def execute(self, prepared: PreparedTask, executor_url: str, container_id: str | None) -> TaskOutcome:
        self.stages.enter("run")
        return DONE

    async def release(self, task: Task, container_id: str | None, *, has_failed: bool) -> None:
        assert container_id == "exec-1"
        self.released.append(has_failed)


class FakeStager:
    def __init__(self, stages: Stages, name: str) -> None:
        self._stages = stages
        self._name = name

    def stage(self, config: TaskConfig, session: Path) -> TaskConfig:
        self._stages.enter(self._name)
        return config


@pytest.fixture
def task() -> Task:
    request = TaskRequest(prompt="x", session_id="s1")
    return Task(task_id="t1", request=request, state=TaskState.RUNNING, created_at=datetime.now(UTC))


def dispatcher(stages: Stages, task: Task, data: Path) -> tuple[TaskDispatcher, Fakes]:
    (data / "sessions").mkdir(parents=True)
    fakes = Fakes(stages, task)
    made = TaskDispatcher(
        tasks=fakes,
        store=SessionStore(data),
        resolver=fakes,
        skills=FakeStager(stages, "skills"),
        attachments=FakeStager(stages, "inputs"),
        executors=fakes,
    )
    return made, fakes


async def test_the_stages_have_their_order(task: Task, tmp_path: Path) -> None:
    stages = Stages()
    made, fakes = dispatcher(stages, task, tmp_path)
    assert await made.dispatch("t1", "s1", "x", TaskConfig()) == DONE
    assert stages.seen == ["config", "skills", "inputs", "executor", "run"]
    assert fakes.released == [False]


@pytest.mark.parametrize("stage", ["config", "skills", "inputs", "executor", "run"])
async def test_a_failure_at_any_stage_fails_the_task_and_keeps_the_error(
    stage: str, task: Task, tmp_path: Path
) -> None:
    made, fakes = dispatcher(Stages(stage), task, tmp_path)
    outcome = await made.run(task)
    assert (outcome.state, outcome.exit_code, outcome.error) == (TaskState.FAILED, 42, f"{stage} went wrong")
    assert fakes.released == ([True] if stage == "run" else [])


def test_a_request_becomes_flags(task: Task, tmp_path: Path) -> None:
    request = replace(
        task.request,
        cwd=str(tmp_path),
        backend="host",
        callback_url="http://127.0.0.1:1/",
        settings={"max_turns": "3"},
        grants=Manifest(programs=("git push",)),
        is_unattended=True,
    )
    resolver = ConfigResolver(tmp_path / "grants", {"concurrency": "2"})
    prepared = resolver.resolve(replace(task, request=request), TaskConfig())
    assert prepared.flags == (
        *("-C", str(tmp_path), "--backend", "host", "--set", "concurrency=2", "--set", "max_turns=3"),
        *("--set", "callback_url=http://127.0.0.1:1/", "--set", "approval_mode=never"),
        *("--manifest", str(tmp_path / "grants" / "t1.toml")),
    )
    assert "git push" in (tmp_path / "grants" / "t1.toml").read_text()
    with pytest.raises(InputError, match="is not an existing folder on this machine"):
        resolver.resolve(replace(task, request=replace(request, cwd="/nowhere")), TaskConfig())


def test_inputs_and_skills_stay_as_they_were(tmp_path: Path) -> None:
    source, session = tmp_path / "data.csv", tmp_path / "session"
    session.mkdir()
    source.write_text("1")
    skill = tmp_path / "my-skill"
    skill.mkdir()
    (skill / "SKILL.md").write_text("---\nname: my-skill\ndescription: x\n---\n")
    config = TaskConfig(input_files=({"path": str(source), "name": "in.csv"},), skill_files=(str(skill), "installed"))
    staged = SkillStager().stage(AttachmentStager().stage(config, session), session)
    source.write_text("2")
    again = SkillStager().stage(AttachmentStager().stage(config, session), session)
    assert staged == again
    [(path, name)] = staged.inputs
    assert (path.read_text(), name) == ("1", "in.csv")
    assert staged.skill_files == (str(session / "skills" / "my-skill"), "installed")
    with pytest.raises(AgentError, match="does not exist on this machine"):
        SkillStager().stage(TaskConfig(skill_files=("/nowhere",)), session)


def test_a_configuration_is_sent_without_its_defaults() -> None:
    assert config_as_json(TaskConfig(model="m", max_turns=3)) == {"model": "m", "max_turns": 3}
