"""A real executor in a real container: a task is sent, callbacks arrive, files are there, the container is gone."""

import asyncio
import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from agent.service.containers.container_executors import ContainerExecutors
from agent.service.containers.pool import ContainerPool
from agent.service.staging import PreparedTask
from agent.service.task import Task, TaskOutcome, TaskRequest, TaskState
from agent.vocabulary.errors import InputError
from agent.vocabulary.task_config import TaskConfig
from tests.agent.hooks.callback_server import Receiver, receiver
from tests.agent.service.containers.pool_cases import count_containers, open_pool, pool_engine, pool_options
from tests.cli.terminal_user import lead_call, lead_reply
from tests.docker_engine import docker
from tests.programs import needs

pytestmark = [pytest.mark.slow, needs("docker", "dockerd")]
__all__ = ["pool_engine"]
LIMIT_S = 240
SECRET = "sk-ant-a-key-that-nobody-may-see"
# Looks for the key and the token wherever a command could find them.
LOOK = (
    "id -u; echo made > output/made.txt; env; ls /run/windlass /data; cat /proc/1/environ; "
    "touch /etc/x /data/x; ls -A /workspace"
)


async def run_task(pool: ContainerPool, told: Receiver, session: str, prompt: str = "do it") -> str:
    url, container_id = await pool.get_or_create_container(session, "anna")
    body = {
        "session_id": session,
        "prompt": prompt,
        "callback_url": told.url,
        "callback_token": "callback-token",
        "config": {"permission_mode": "bypassPermissions", "user_id": "anna"},
    }
    before = len(told.events)
    headers = {"Authorization": f"Bearer {pool.token(container_id)}", "X-Trace-ID": "f" * 32}
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        refused = await client.post(f"{url}/v1/tasks/execute", json=body, headers={"Authorization": "Bearer wrong"})
        assert refused.status_code == 401
        answer = await client.post(f"{url}/v1/tasks/execute", json=body, headers=headers)
    assert answer.json() == {"status": "accepted", "session_id": session}
    await asyncio.to_thread(wait_for_end, told, before)
    return container_id


def wait_for_end(told: Receiver, before: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not {"task_completed", "task_failed"} & set(map(str, told.events[before:])):
        assert time.monotonic() < deadline, told.events
        time.sleep(0.05)


async def test_a_task_runs_in_a_container_and_leaves_only_its_files(pool_engine: Path, tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    replies = [lead_call("run_command", command=LOOK), lead_reply("Done.")]
    (scripts / "reply.jsonl").write_text("\n".join(json.dumps(reply) for reply in replies))
    root = tmp_path / "root"
    with receiver() as told:
        options = pool_options(scripts, secrets={"ANTHROPIC_AUTH_TOKEN": SECRET}, callback_url=told.url)
        async with open_pool(pool_engine, root, options) as pool:
            container_id = await run_task(pool, told, "session-1")
            (row,) = (await pool.stats()).containers
            shown = docker(pool_engine, "inspect", row.name) + docker(pool_engine, "logs", row.name)
            assert SECRET not in shown
            assert pool.token(container_id) not in shown
            # What the container has read is deleted.
            run = root / ".pool" / "containers" / container_id / "run"
            assert [path.name for path in run.iterdir()] == [f"callback-{urlsplit(told.url).port}.sock"]
            await pool.release(container_id)
            assert (await pool.stats()).containers == ()
    assert told.events == ["task_started", "tool_call", "agent_response", "task_completed"]
    assert {request.headers["X-Trace-ID"] for request in told.taken} == {"f" * 32}
    output = str(told.taken[1].data["tool_output"])
    assert output.startswith("65534\n")
    assert SECRET not in output
    assert "cannot touch '/etc/x'" in output
    assert "cannot touch '/data/x'" in output
    workspace = root / "user_anna" / "session_session-1"
    assert (workspace / "output" / "made.txt").read_text() == "made\n"
    assert (
        workspace.parent / ".sessions" / workspace.name / "data" / "sessions" / "session-1" / "events.jsonl"
    ).exists()


async def test_a_task_in_a_warm_container_continues_the_session_of_another_one(
    pool_engine: Path, tmp_path: Path
) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "reply.jsonl").write_text(json.dumps({**lead_reply("Yes."), "repeat": True}))
    root = tmp_path / "root"
    with receiver() as told:
        async with open_pool(pool_engine, root, pool_options(scripts, callback_url=told.url, warm=1)) as pool:
            for number in (1, 2):
                await asyncio.to_thread(wait_until_warm, pool)
                await pool.release(await run_task(pool, told, "s1", f"question {number}"))
    data = root / "user_anna" / ".sessions" / "session_s1" / "data"
    log = (data / "sessions" / "s1" / "events.jsonl").read_text()
    assert "question 1" in log
    assert "question 2" in log
    assert told.events.count("task_completed") == 2


def wait_until_warm(pool: ContainerPool) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not pool.warm:
        assert time.monotonic() < deadline
        time.sleep(0.05)


class NoLocalExecutors:
    """Where tasks run that want no container."""

    async def acquire(self, task: Task) -> tuple[str, str | None]:
        return "local:", None

    async def execute(self, prepared: PreparedTask, executor_url: str, container_id: str | None) -> TaskOutcome:
        return TaskOutcome(state=TaskState.COMPLETED, exit_code=0, answer="local")

    async def release(self, task: Task, container_id: str | None, *, has_failed: bool) -> None:
        pass


def new_task(config: TaskConfig, **more: object) -> Task:
    request = TaskRequest(prompt="read it", config=config, session_id="s1", **more)  # type: ignore[arg-type]
    return Task(task_id="t1", request=request, state=TaskState.RUNNING, created_at=datetime.now(UTC))


async def run_dispatched(executors: ContainerExecutors, task: Task) -> TaskOutcome:
    url, container_id = await executors.acquire(task)
    has_failed = True
    try:
        prepared = PreparedTask(task=task, flags=(), config=task.request.config)
        outcome = await executors.execute(prepared, url, container_id)
        has_failed = outcome.state is not TaskState.COMPLETED
        return outcome
    finally:
        await executors.release(task, container_id, has_failed=has_failed)


async def test_a_worker_runs_a_task_that_wants_a_container_in_one(pool_engine: Path, tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    replies = [lead_call("run_command", command="cat input/data.csv"), lead_reply("It says 1,2.")]
    (scripts / "reply.jsonl").write_text("\n".join(json.dumps(reply) for reply in replies))
    (tmp_path / "data.csv").write_text("1,2")
    root = tmp_path / "root"
    executors = ContainerExecutors(
        NoLocalExecutors(), lambda: open_pool(pool_engine, root, pool_options(scripts)), limit_s=LIMIT_S
    )
    try:
        assert (await run_dispatched(executors, new_task(TaskConfig()))).answer == "local"
        config = TaskConfig(container_mode="ephemeral", user_id="anna", input_files=(str(tmp_path / "data.csv"),))
        outcome = await run_dispatched(executors, new_task(config))
        assert (outcome.state, outcome.answer) == (TaskState.COMPLETED, "It says 1,2.")
        # The script is used up: the second task fails, and says why.
        failed = await run_dispatched(executors, new_task(replace(config, model="script:/opt/scripts/missing.jsonl")))
        assert failed.state is TaskState.FAILED
        assert "missing.jsonl" in failed.error
        with pytest.raises(InputError, match="cannot have a folder of yours"):
            await executors.acquire(new_task(config, cwd="/tmp"))
    finally:
        await executors.close()
    log = root / "user_anna" / ".sessions" / "session_s1" / "data" / "sessions" / "s1" / "events.jsonl"
    assert "1,2" in log.read_text()
    assert count_containers(pool_engine) == 0
