"""TaskService: requests are checked and completed, questions found, sessions brought to other machines."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.service.dbos_engine.engine import DbosEngine
from agent.service.new_request import complete_request
from agent.service.night_window import NightWindow
from agent.service.session_transfer import SessionTransfer
from agent.service.task import PendingQuestion, ScheduleMode, TaskRequest, TaskState
from agent.service.task_data import task_data
from agent.service.task_service import TaskService
from agent.service.workspaces.storage import FolderArchives
from agent.sessions.store import SessionStore
from agent.vocabulary.errors import InputError
from agent.vocabulary.task_config import TaskConfig

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.fixture
def service(tmp_path: Path) -> TaskService:
    return TaskService(DbosEngine(tmp_path, now=lambda: NOON), SessionStore(tmp_path), NightWindow(), lambda: NOON)


async def test_a_created_task_has_a_session_and_a_trace(service: TaskService) -> None:
    response = await service.create_task("ann", " count ", TaskConfig(model="m"))
    assert (response.status, response.executor_url, response.container_id) == ("scheduled", "local:", None)
    task = await service.get(response.task_id)
    assert (task.request.prompt, task.request.user_id, task.request.config.model) == ("count", "ann", "m")
    assert len(task.request.trace_id) == 32
    again = await service.create_task("ann", "more", TaskConfig(), response.session_id)
    assert again.session_id == response.session_id
    assert task_data(task).status == "queued"


async def test_a_nightly_task_waits_for_the_window(service: TaskService) -> None:
    task = await service.create(TaskRequest(prompt="x", mode=ScheduleMode.NIGHTLY))
    assert task.request.run_at == datetime(2026, 1, 6, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    "wrong",
    [
        TaskRequest(prompt=" "),
        TaskRequest(prompt="a\0b"),
        TaskRequest(prompt="x" * 200_001),
        TaskRequest(prompt="x", priority=101),
        TaskRequest(prompt="x", session_id="../../etc"),
        TaskRequest(prompt="x", callback_url="ftp://example.org/hook"),
        TaskRequest(prompt="x", config=TaskConfig(git_branch="main")),
        TaskRequest(prompt="x", config=TaskConfig(repo_url="gopher://example.org/x.git")),
    ],
)
async def test_what_cannot_run_is_refused(service: TaskService, wrong: TaskRequest) -> None:
    with pytest.raises(InputError):
        await service.create(wrong)


async def test_names_of_schedules_are_plain(service: TaskService) -> None:
    request = TaskRequest(prompt="x")
    for name in ("a@b", "../x", "a b"):
        with pytest.raises(InputError, match="cannot be the name"):
            await service.create_schedule(request, "0 2 * * *", name=name)
    with pytest.raises(InputError, match="of five fields"):
        await service.create_schedule(request, "* * * * * *")
    made = await service.create_schedule(request, "0 2 * * *")
    assert made.next_run_at == datetime(2026, 1, 6, 2, tzinfo=UTC)
    assert made.request.session_id == ""


class FakeQuestions:
    """Questions in memory."""

    def __init__(self, *questions: PendingQuestion) -> None:
        self.questions = list(questions)
        self.answered: list[PendingQuestion] = []

    async def list(self, *, task_id: str = "", is_open: bool = True) -> list[PendingQuestion]:
        return self.questions

    async def answer(self, question: PendingQuestion) -> PendingQuestion:
        self.answered.append(question)
        return question


async def test_a_question_is_found_by_its_id_or_its_task(service: TaskService) -> None:
    asked = PendingQuestion(
        question_id="q1",
        task_id="t1",
        session_id="s",
        kind="question",
        text="?",
        asked_at=NOON,
        expires_at=NOON + timedelta(hours=1),
    )
    approvals = [replace(asked, question_id=name, kind="approval", text="git push") for name in ("a1", "a2")]
    fake = FakeQuestions(asked, *approvals)
    service._engine.questions = fake  # type: ignore[misc, assignment]
    assert (await service.answer("t1", " blue ")).answer == "blue"
    assert (await service.approve("a2", "allow", remember="run")).remember == "run"
    with pytest.raises(InputError, match="has 2 open approvals"):
        await service.approve("t1", "deny")
    with pytest.raises(InputError, match="no question 'a1' waits"):
        await service.answer("a1", "x")
    with pytest.raises(InputError, match="is empty"):
        await service.answer("q1", " ")
    with pytest.raises(InputError, match="cannot be remembered"):
        await service.approve("a1", "allow", command="ls", remember="run")
    assert [question.question_id for question in fake.answered] == ["q1", "a2"]


def session(data: Path, text: str) -> SessionStore:
    store = SessionStore(data)
    folder = store.open("s1") if (data / "sessions").is_dir() else _new(store, data)
    folder.events.write_text(
        json.dumps(
            {
                "v": 1,
                "type": "warning",
                "ts": "2026-01-05T12:00:00.000Z",
                "seq": 1,
                "session_id": "s1",
                "run_id": "run-1",
                "message": text,
            }
        )
        + "\n"
    )
    (folder.workspace / "file").write_text(text)
    return store


def _new(store: SessionStore, data: Path):  # type: ignore[no-untyped-def]
    data.mkdir(mode=0o700)
    return store.open("s1")


async def test_a_session_goes_to_another_machine_and_back(tmp_path: Path) -> None:
    archives = FolderArchives(tmp_path / "bucket")
    warnings: list[str] = []
    here = session(tmp_path / "here", "first")
    (tmp_path / "there").mkdir(mode=0o700)
    there = SessionStore(tmp_path / "there")
    one, two = (SessionTransfer(store, archives, warnings.append) for store in (here, there))
    await one.fetch("s1")
    await one.store("s1")
    await two.fetch("s1")
    folder = there.folder_for("s1")
    assert (folder.workspace / "file").read_text() == "first"
    (folder.workspace / "file").write_text("second")
    await two.store("s1")
    await one.fetch("s1")
    assert (here.folder_for("s1").workspace / "file").read_text() == "second"
    assert warnings == []
    await one.fetch("never-seen")
    await one.store("never-seen")


async def test_work_that_was_not_stored_is_not_overwritten_by_an_older_archive(tmp_path: Path) -> None:
    archives = FolderArchives(tmp_path / "bucket")
    here = session(tmp_path / "here", "first")
    transfer = SessionTransfer(here, archives, lambda message: None)
    await transfer.store("s1")
    folder = here.folder_for("s1")
    (folder.root / "transferred.json").unlink()
    (folder.workspace / "file").write_text("newer")
    with folder.events.open("a") as log:
        log.write("\n")
    await transfer.fetch("s1")
    assert (folder.workspace / "file").read_text() == "newer"


async def test_a_machine_that_lost_a_session_does_not_replace_what_another_has_done(tmp_path: Path) -> None:
    archives = FolderArchives(tmp_path / "bucket")
    warnings: list[str] = []
    here = session(tmp_path / "here", "first")
    (tmp_path / "there").mkdir(mode=0o700)
    there = SessionStore(tmp_path / "there")
    one, two = (SessionTransfer(store, archives, warnings.append) for store in (here, there))
    await one.store("s1")
    await two.fetch("s1")
    (here.folder_for("s1").workspace / "file").write_text("of a worker that was stopped for long")
    await one.store("s1")
    assert warnings == ["session s1 was not stored: another machine has it now"]
    (there.folder_for("s1").workspace / "file").write_text("second")
    await two.store("s1")
    await one.fetch("s1")
    assert (here.folder_for("s1").workspace / "file").read_text() == "second"


def test_bytes_that_no_database_can_store_are_refused() -> None:
    for request in (TaskRequest(prompt="bad \udcff"), TaskRequest(prompt="x", cwd="/a\udcff")):
        with pytest.raises(InputError, match="the task has bytes that are not UTF-8"):
            complete_request(request, NOON, NightWindow())


def test_a_state_is_a_word() -> None:
    assert str(TaskState.CANCELED) == "canceled"
