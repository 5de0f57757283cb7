"""Every endpoint over HTTP: what it returns, and how it says that something cannot be done."""

import json
from datetime import timedelta

import httpx
import pytest

from agent.service.task import TaskOutcome, TaskState
from agent.service.workspaces.layout import WorkspaceStore
from tests.agent.api.fake_engine import NOW
from tests.agent.api.page_scene import write_beginning, write_end
from tests.agent.api.served import Server, WrittenRun


def data(reply: httpx.Response, status: int = 200) -> dict[str, object]:
    document = reply.json()
    assert (reply.status_code, document["code"], document["message"]) == (status, 0, "ok"), reply.text
    found: dict[str, object] = document["data"]
    return found


def problem(reply: httpx.Response) -> tuple[int, str]:
    document = reply.json()
    assert set(document) == {"code", "message", "data"}
    assert set(document["data"]) == {"hint", "errors"}
    assert document["code"] == reply.status_code
    return reply.status_code, document["message"]


def test_a_task_is_created_and_shown_with_the_documented_keys(server: Server) -> None:
    with server.client() as client:
        created = data(client.post("/api/v1/tasks", json={"prompt": "count the files"}), 201)
        shown = data(client.get(f"/api/v1/tasks/{created['task_id']}"))
    assert list(created) == ["task_id", "session_id", "status", "executor_url", "container_id"]
    assert (created["status"], created["executor_url"], created["container_id"]) == ("scheduled", "local:", None)
    assert (shown["status"], shown["prompt"], shown["next_run_time"]) == ("queued", "count the files", None)


def test_everything_about_a_task_can_be_given(server: Server) -> None:
    body = {
        "prompt": "work",
        "config": {"repo_url": "https://example.org/x.git", "git_branch": "main", "model": "openai/gpt-5"},
        "user_id": "ada",
        "session_id": "s-9",
        "run_at": "2026-06-01T09:00:00+02:00",
        "priority": 7,
        "cwd": "/srv/work",
        "backend": "docker",
        "callback_url": "https://example.org/done",
    }
    with server.client() as client:
        task_id = data(client.post("/api/v1/tasks", json=body), 201)["task_id"]
    request = server.engine.tasks.by_id[str(task_id)].request
    assert (request.config.repo_url, request.config.git_branch, request.session_id) == (
        "https://example.org/x.git",
        "main",
        "s-9",
    )
    assert request.run_at is not None
    assert (request.run_at.isoformat(), str(request.mode)) == ("2026-06-01T07:00:00+00:00", "scheduled")
    assert (request.priority, request.cwd, request.backend, request.user_id) == (7, "/srv/work", "docker", "ada")


def test_a_creation_that_is_sent_again_with_its_key_creates_one_task(server: Server) -> None:
    with server.client(**{"Idempotency-Key": "k-1"}) as client:
        replies = [data(client.post("/api/v1/tasks", json={"prompt": "once"}), 201) for _ in range(3)]
    assert len({str(reply["task_id"]) for reply in replies}) == 1
    assert len(server.engine.tasks.by_id) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"prompt": ""},
        {"prompt": "  \n"},
        {"prompt": "a\0b"},
        {"prompt": "x", "unknown": 1},
        {"prompt": "x", "priority": 1000},
        {"prompt": "x", "run_at": "2026-06-01T09:00:00"},
        {"prompt": "x", "session_id": "../../etc"},
        {"prompt": "x", "backend": "elsewhere"},
        {"prompt": "x", "config": {"nonsense": True}},
        [1, 2],
        "text",
    ],
)
def test_a_task_that_makes_no_sense_is_refused_with_a_reason(server: Server, body: object) -> None:
    with server.client() as client:
        status, message = problem(client.post("/api/v1/tasks", json=body))
    assert (status, bool(message)) == (422, True)
    assert server.engine.tasks.by_id == {}


def test_tasks_are_listed_newest_first_and_filtered(server: Server) -> None:
    first = server.task("one", TaskState.COMPLETED)
    second = server.task("two", TaskState.QUEUED)
    with server.client() as client:
        every = client.get("/api/v1/tasks").json()["data"]
        queued = client.get("/api/v1/tasks", params={"status": "queued"}).json()["data"]
        page = client.get("/api/v1/tasks", params={"limit": 1, "offset": 1}).json()["data"]
        wrong = problem(client.get("/api/v1/tasks", params={"status": "nonsense"}))
    assert [task["task_id"] for task in every] == [second.task_id, first.task_id]
    assert [task["task_id"] for task in queued] == [second.task_id]
    assert [task["task_id"] for task in page] == [first.task_id]
    assert wrong[0] == 422


def test_an_ended_task_stays_with_its_answer(server: Server) -> None:
    outcome = TaskOutcome(state=TaskState.COMPLETED, exit_code=0, answer="42", run_id="run-x", cost_usd=0.5)
    task = server.task("what is it?", TaskState.COMPLETED, outcome=outcome, started_at=NOW, ended_at=NOW)
    with server.client() as client:
        shown = data(client.get(f"/api/v1/tasks/{task.task_id}"))
    assert (shown["status"], shown["answer"], shown["exit_code"], shown["run_id"]) == ("completed", "42", 0, "run-x")


def test_tasks_are_canceled_and_retried_where_that_is_possible(server: Server) -> None:
    queued, done = server.task("a"), server.task("b", TaskState.COMPLETED)
    with server.client() as client:
        canceled = data(client.post(f"/api/v1/tasks/{queued.task_id}/cancel"))
        again = data(client.post(f"/api/v1/tasks/{queued.task_id}/retry"))
        refused = problem(client.post(f"/api/v1/tasks/{done.task_id}/cancel"))
        unknown = [problem(client.post(f"/api/v1/tasks/nothing/{verb}"))[0] for verb in ("cancel", "retry")]
    assert (canceled["status"], again["status"]) == ("canceled", "queued")
    assert refused == (409, f"task {done.task_id} is completed and cannot be canceled")
    assert unknown == [404, 404]


def test_a_schedule_is_created_paused_run_and_removed(server: Server) -> None:
    body = {"cron": "0 9 * * 1-5", "zone": "Europe/Berlin", "name": "morning", "task": {"prompt": "read the news"}}
    with server.client() as client:
        created = data(client.post("/api/v1/schedules", json=body), 201)
        again = problem(client.post("/api/v1/schedules", json=body))
        wrong = problem(client.post("/api/v1/schedules", json={**body, "name": "x", "cron": "often"}))
        paused = data(client.post("/api/v1/schedules/morning/pause"))
        resumed = data(client.post("/api/v1/schedules/morning/resume"))
        task = data(client.post("/api/v1/schedules/morning/run-now"), 201)
        listed = client.get("/api/v1/schedules").json()["data"]
        data(client.delete("/api/v1/schedules/morning"))
        gone = problem(client.delete("/api/v1/schedules/morning"))
    assert (created["cron"], paused["is_paused"], resumed["is_paused"]) == ("0 9 * * 1-5", True, False)
    assert (again[0], wrong[0], gone[0]) == (422, 422, 404)
    assert (task["schedule"], listed[0]["last_task_id"]) == ("morning", task["task_id"])


def test_an_approval_shows_what_the_terminal_shows_and_takes_a_decision(server: Server) -> None:
    task = server.task("tidy up", TaskState.RUNNING)
    server.ask(task, "a-1", "rm -r\u202e build\nrm -r dist", reason="it deletes\x1b[2J files", rule="rm")
    with server.client() as client:
        (shown,) = client.get("/api/v1/questions").json()["data"]
        decided = data(client.post("/api/v1/approvals/a-1", json={"decision": "allow", "remember": "run"}))
        late = problem(client.post("/api/v1/approvals/a-1", json={"decision": "deny"}))
        unknown = problem(client.post("/api/v1/approvals/a-9", json={"decision": "deny"}))
        left = client.get("/api/v1/questions").json()["data"]
        every = client.get("/api/v1/questions", params={"all": True}).json()["data"]
    assert shown["card"].splitlines() == [
        "allow this?  rm -r\\u202e build",
        "  │ rm -r dist",
        "  in /work",
        "  because it deletes\\x1b[2J files",
    ]
    assert (decided["state"], decided["answer"], server.engine.questions.by_id["a-1"].remember) == (
        "answered",
        "allow",
        "run",
    )
    assert (late[0], unknown[0], left, len(every)) == (409, 404, [], 1)


def test_a_question_is_answered(server: Server) -> None:
    task = server.task("paint", TaskState.RUNNING)
    server.ask(task, "q-1", "Which color?", kind="question", options=("red", "blue"))
    with server.client() as client:
        (shown,) = client.get("/api/v1/questions", params={"task_id": task.task_id}).json()["data"]
        empty = problem(client.post("/api/v1/questions/q-1/answer", json={"answer": ""}))
        answered = data(client.post("/api/v1/questions/q-1/answer", json={"answer": "blue"}))
        again = problem(client.post("/api/v1/questions/q-1/answer", json={"answer": "red"}))
        form = client.post("/api/v1/questions/q-1/answer", data={"answer": "red"}).json()
    assert shown["card"] == "Which color?\n  1. red\n  2. blue"
    assert (empty[0], answered["answer"]) == (422, "blue")
    # Nothing is wrong with the request: it comes too late.
    assert again == (409, "q-1 is answered already")
    assert form["data"]["hint"] == "send JSON, with the header Content-Type: application/json"


def test_runs_and_sessions_are_shown(server: Server) -> None:
    run = WrittenRun(server.store, "s1")
    write_beginning(run, "t1")
    write_end(run)
    with server.client() as client:
        shown = data(client.get(f"/api/v1/runs/{run.run_id}"))
        listed = client.get("/api/v1/runs").json()["data"]
        session = data(client.get("/api/v1/sessions/s1"))
        sessions = client.get("/api/v1/sessions").json()["data"]
        missing = [problem(client.get(f"/api/v1/{path}/nothing"))[0] for path in ("runs", "sessions")]
    steps = shown["steps"]
    assert isinstance(steps, list)
    assert (shown["subtype"], len(steps), listed[0]["run_id"]) == ("success", 6, run.run_id)
    required = ("session_id", "user_id", "status", "sdk_session_id", "created_at")
    assert [session[key] for key in required] == ["s1", "local", "success", "s1", "2026-05-04T12:30:01.000Z"]
    assert (sessions[0]["id"], missing) == ("s1", [404, 404])


def test_a_running_task_names_its_run(server: Server) -> None:
    task = server.task("work", TaskState.RUNNING, started_at=NOW - timedelta(minutes=1))
    WrittenRun(server.store, task.session_id, "run-of-another-task")
    earlier = WrittenRun(server.store, task.session_id, "run-1")
    write_beginning(earlier, "t-another")
    run = WrittenRun(server.store, task.session_id, "run-2")
    write_beginning(run, task.task_id)
    with server.client() as client:
        assert data(client.get(f"/api/v1/tasks/{task.task_id}"))["run_id"] == "run-2"


def test_a_callback_is_taken_once(server: Server) -> None:
    body = {"event": "task_completed", "session_id": "s1", "data": {"answer": "42"}, "extra": 1}
    with server.client(**{"Idempotency-Key": "k1", "X-Trace-ID": "abc"}) as client:
        first = data(client.post("/api/v1/callback", json=body))
        again = data(client.post("/api/v1/callback", json=body))
        kept = client.get("/api/v1/sessions/s1/callbacks").json()["data"]
        bad = problem(client.post("/api/v1/callback", json={**body, "session_id": "../x"}))
    assert (first["is_new"], again["is_new"], bad[0]) == (True, False, 422)
    assert [(one["event"], one["data"], one["trace_id"]) for one in kept] == [
        ("task_completed", {"answer": "42"}, "abc")
    ]


def test_callbacks_tell_what_a_session_and_its_task_do(server: Server) -> None:
    task = server.task("work", TaskState.RUNNING)
    patch = {"todos": [{"content": "a", "status": "in_progress"}, 7], "current_step": "a"}
    call = {"turn": 1, "tool_name": "run_command", "tool_input": {"command": "make"}, "tool_output": "done"}
    reports = [
        ("task_started", {"status": "running", "progress": 0}),
        ("tool_call", {**call, "progress": 50, "state_patch": patch}),
        ("agent_response", {"turn": 2, "response": "All is built.", "progress": 20}),
        ("other", {"progress": "many", "state_patch": [], "error_message": 3}),
    ]
    path = f"/api/v1/sessions/{task.session_id}"
    with server.client() as client:

        def send(event: str, facts: object) -> None:
            body = {"event": event, "session_id": task.session_id, "data": facts}
            for _ in range(2):
                data(client.post("/api/v1/callback", json=body))

        for event, facts in reports:
            send(event, facts)
        running = data(client.get(f"/api/v1/tasks/{task.task_id}"))
        half = data(client.get(path))["report"]
        send("task_completed", {"progress": 100})
        send("tool_call", {**call, "turn": 3, "progress": 10})
        shown = data(client.get(path))
    assert (running["status"], running["progress"]) == ("running", 50)
    assert isinstance(half, dict)
    assert (half["status"], half["progress"], half["todos"]) == ("running", 50, patch["todos"][:1])
    report = shown["report"]
    assert isinstance(report, dict)
    # What comes after the end is kept, and undoes nothing.
    assert (shown["status"], report["status"], report["progress"]) == ("completed", "completed", 100)
    assert [(one["turn"], one["tool_output"]) for one in report["tool_executions"]] == [(1, "done"), (3, "done")]
    assert [(one["turn"], one["text"]) for one in report["messages"]] == [(2, "All is built.")]


def test_executors_and_their_load_are_shown(server: Server) -> None:
    server.task("a", TaskState.RUNNING)
    server.task("b")
    with server.client() as client:
        stats = data(client.get("/api/v1/executor/stats"))
        load = data(client.get("/api/v1/executor/load"))
        missing = problem(client.delete("/api/v1/executor/containers/exec-1"))
    assert list(stats)[:4] == ["total_active", "persistent_containers", "ephemeral_containers", "containers"]
    assert (stats["total_active"], stats["containers"]) == (0, [])
    assert load == {"running": 1, "queued": 1, "capacity": 0, "load": 1.0}
    assert missing[0] == 404


def test_workspaces_are_listed_archived_and_removed(server: Server) -> None:
    store = WorkspaceStore(server.data / "workspaces")
    (store.open("ada", "s1").path / "output" / "report.txt").write_text("done")
    store.open("ada", "s2", "persistent")
    with server.client() as client:
        (first, _) = client.get("/api/v1/workspaces").json()["data"]
        stats = data(client.get("/api/v1/workspaces/stats"))
        files = client.get("/api/v1/workspaces/ada/s1/files").json()["data"]
        archive = data(client.post("/api/v1/workspaces/ada/s1/archive"))
        data(client.delete("/api/v1/workspaces/ada/s1"))
        refused = problem(client.delete("/api/v1/workspaces/ada/s2"))
        data(client.delete("/api/v1/workspaces/ada/s2", params={"force": True}))
        missing = problem(client.get("/api/v1/workspaces/ada/s1/files"))
    assert (first["user_id"], first["session_id"], first["files"], first["is_running"]) == ("ada", "s1", 1, False)
    assert (stats["workspaces"], stats["size_bytes"]) == (2, 4)
    assert [file["path"] for file in files] == ["input", "output", "output/report.txt"]
    assert str(archive["location"]).endswith(".tar.gz")
    assert (refused[0], missing[0], list(store.all())) == (422, 404, [])


def test_metrics_are_in_the_format_of_prometheus(server: Server) -> None:
    server.task("a")
    with server.client() as client:
        client.get("/api/v1/tasks/nothing")
        text = client.get("/metrics").text
    assert 'windlass_tasks{state="queued"} 1' in text
    assert 'windlass_http_requests_total{method="GET",route="/api/v1/tasks/{task_id}",status="404"} 1' in text
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(float(line.rpartition(" ")[2]) >= 0 for line in samples)


def test_unknown_paths_and_methods_have_the_same_form(server: Server) -> None:
    with server.client() as client:
        assert problem(client.get("/api/v1/nothing"))[0] == 404
        assert problem(client.put("/api/v1/tasks"))[0] == 405
        assert (
            problem(client.post("/api/v1/tasks", content=b"{", headers={"content-type": "application/json"}))[0] == 422
        )


def test_the_openapi_document_describes_every_endpoint(server: Server) -> None:
    with server.client() as client:
        document = client.get("/openapi.json").json()
    operations = {f"{verb.upper()} {path}" for path, verbs in document["paths"].items() for verb in verbs}
    assert {
        "POST /api/v1/tasks",
        "GET /api/v1/tasks/{task_id}",
        "GET /api/v1/sessions/{session_id}",
        "GET /api/v1/executor/stats",
        "POST /api/v1/callback",
        "GET /api/v1/health",
        "GET /api/v1/runs/{run_id}/events",
    } <= operations
    assert not any(path.startswith("/ui") for path in document["paths"])
    assert all("description" in op for verbs in document["paths"].values() for op in verbs.values())
    assert "TaskData" in json.dumps(document["components"])
