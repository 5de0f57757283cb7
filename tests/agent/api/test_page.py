"""The page in a real Chromium: what users see and do, on every size, and with text that wants to be code."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from agent.api.parts import input_request
from agent.protocol.events import (
    FilesChanged,
    MessageAdded,
    PlanUpdated,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolStarted,
)
from agent.service.task import TaskState
from agent.vocabulary.plan import PlanStep
from cli.screen.cards import card_text
from tests.agent.api.browser import DESKTOP, PHONE, chromium, open_page
from tests.agent.api.fake_engine import NOW
from tests.agent.api.page_scene import busy_server, write_end
from tests.agent.api.served import TOKEN, Server, WrittenRun, serve
from tests.programs import needs
from tooling.contract.result import FileChange

pytestmark = [pytest.mark.slow, needs("chromium")]

LIMIT_MS = 60_000
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "{{ 7*7 }} </pre></textarea><svg onload=document.title='owned'> [x](javascript:document.title='owned')"
    " \u202eevil\x1b[2J"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serve(tmp_path / "data") as running:
        yield running
        assert running.bugs == []


def test_the_printed_link_logs_in_once(server: Server, browser: Browser) -> None:
    link = f"{server.page_url}/login#{server.sessions.new_code()}"
    with open_page(browser, server, logs_in=False) as page:
        page.goto(link)
        page.wait_for_url(f"{server.page_url}/")
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["domain"]) == (True, "Strict", "windlass.localhost")
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")
        page.goto(f"{server.page_url}/schedules")
        expect(page).to_have_url(f"{server.page_url}/login?next=/schedules")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/schedules")


def test_a_used_link_and_a_wrong_token_do_not_log_in(server: Server, browser: Browser) -> None:
    code = server.sessions.new_code()
    server.sessions.redeem(code)
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{server.page_url}/login#{code}")
    expect(page.get_by_role("alert")).to_contain_text("not valid", timeout=LIMIT_MS)
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("not valid", timeout=LIMIT_MS)
    assert context.cookies() == []
    context.close()


def test_a_run_is_watched_live_and_its_plan_fills_in(server: Server, browser: Browser) -> None:
    with busy_server(server) as task, open_page(browser, server) as page:
        run = WrittenRun(server.store, task.session_id)
        run._seq = 50
        page.goto(f"{server.page_url}/tasks/{task.task_id}")
        expect(page.locator(".node.good")).to_have_count(2)
        page.locator("#call-python-1 > summary").click()
        expect(page.locator("#call-python-1 .output")).to_contain_text("Updated httpx")
        write_end(run)
        expect(page.locator(".node.good")).to_have_count(6, timeout=LIMIT_MS)
        expect(page.locator("#run-answer")).to_contain_text("the tests pass", timeout=LIMIT_MS)
        # What the user opened stays open.
        expect(page.locator("#call-python-1 .output")).to_be_visible()
        expect(page.locator("#run-facts")).to_contain_text("$0.11")
        page.locator("#change-python-1 > summary").click()
        expect(page.locator("#change-python-1 .added").first).to_contain_text('"httpx>=0.28,<1"')


def test_an_approval_shows_the_text_of_the_terminal_and_is_given(server: Server, browser: Browser) -> None:
    with busy_server(server) as task, open_page(browser, server) as page:
        request = server.engine.questions.by_id["a-1"]
        shown = page.locator(".ask pre").inner_text()
        page.get_by_role("button", name="Allow once").click()
        expect(page.locator(".ask")).to_have_count(0)
    assert shown.startswith(f"web: allow this?  {request.text}")
    assert "  because it deletes files in bulk" in shown
    answered = server.engine.questions.by_id["a-1"]
    assert (answered.state, answered.answer, answered.remember) == ("answered", "allow", None)
    assert task.task_id == answered.task_id


@pytest.mark.parametrize(
    ("button", "answer", "remember"),
    [("Deny", "deny", None), ("Allow in this run", "allow", "run"), ("Always allow npm install", "allow", "always")],
)
def test_other_decisions_say_what_they_mean(
    server: Server, browser: Browser, button: str, answer: str, remember: str | None
) -> None:
    with busy_server(server), open_page(browser, server) as page:
        page.locator(".ask summary").click()
        page.get_by_label("Tell the model why").fill("use vite 8")
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.locator(".ask")).to_have_count(0)
    decided = server.engine.questions.by_id["a-1"]
    assert (decided.answer, decided.remember, decided.remark) == (answer, remember, "use vite 8")


def test_a_question_appears_without_a_reload_and_is_answered_with_the_keyboard(
    server: Server, browser: Browser
) -> None:
    with busy_server(server) as task, open_page(browser, server) as page:
        expect(page.locator(".ask")).to_have_count(1)
        server.ask(task, "q-1", "Which color?", kind="question", options=("red", "blue"))
        expect(page.locator(".ask")).to_have_count(2, timeout=LIMIT_MS)
        expect(page.locator("#announcer")).to_contain_text("Waiting for you")
        page.locator("#ask-q-1 textarea").focus()
        page.keyboard.type("green, please")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("#ask-q-1")).to_have_count(0, timeout=LIMIT_MS)
    assert server.engine.questions.by_id["q-1"].answer == "green, please"


def test_what_is_being_typed_survives_an_update(server: Server, browser: Browser) -> None:
    with busy_server(server) as task, open_page(browser, server) as page:
        server.ask(task, "q-1", "Which color?", kind="question")
        page.goto(f"{server.page_url}/tasks/{task.task_id}")
        page.locator("#ask-q-1 textarea").type("half an ans")
        server.ask(task, "q-2", "And which size?", kind="question")
        server.engine.tasks.put(server.engine.tasks.by_id[task.task_id])
        with page.expect_response(lambda reply: reply.url.endswith(task.task_id), timeout=LIMIT_MS):
            pass
        expect(page.locator("#ask-q-1 textarea")).to_have_value("half an ans")
        expect(page.locator("#ask-q-1 textarea")).to_be_focused()


def test_a_task_is_created_canceled_and_resumed(server: Server, browser: Browser) -> None:
    with open_page(browser, server) as page:
        page.get_by_label("What should be done?").fill("count\nthe files")
        page.get_by_text("When and where").click()
        page.get_by_label("Start").select_option("at")
        page.get_by_label("Time", exact=True).fill("2030-01-02T09:30")
        expect(page.get_by_label("Time zone")).to_have_value("Europe/Berlin")
        page.get_by_role("button", name="Create task").click()
        page.wait_for_url("**/tasks/t*")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator(".title-row .pill")).to_have_text("canceled")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator(".title-row .pill")).to_have_text("queued")
    (task,) = server.engine.tasks.by_id.values()
    assert task.request.run_at is not None
    assert (task.request.prompt, task.request.run_at.isoformat()) == ("count\nthe files", "2030-01-02T08:30:00+00:00")


def test_a_schedule_is_created_and_removed(server: Server, browser: Browser) -> None:
    with open_page(browser, server) as page:
        page.get_by_label("What should be done?").fill("read the news")
        page.get_by_text("When and where").click()
        page.get_by_label("Start").select_option("cron")
        page.get_by_label("Cron expression").fill("0 9 * * *")
        page.get_by_label("Name").fill("news")
        page.get_by_role("button", name="Create task").click()
        page.wait_for_url("**/schedules")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator(".pill")).to_have_text("paused")
        page.get_by_role("button", name="Run now").click()
        page.get_by_role("link", name="queued").click()
        expect(page.locator("h1")).to_have_text("read the news")
        page.goto(f"{server.page_url}/schedules")
        page.get_by_role("button", name="Remove").click()
        expect(page.locator("main")).to_contain_text("No schedules")


def test_everything_needed_works_without_javascript(server: Server, browser: Browser) -> None:
    with (
        busy_server(server) as task,
        open_page(browser, server, logs_in=False, has_javascript=False) as page,
    ):
        page.goto(f"{server.page_url}/tasks/{task.task_id}")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        expect(page.locator(".ask pre")).to_contain_text("npm install")
        page.get_by_role("button", name="Deny").click()
        expect(page.locator(".ask")).to_have_count(0)
    assert server.engine.questions.by_id["a-1"].answer == "deny"


def hostile_server(server: Server) -> str:
    """Fill every place that shows foreign text with text that wants to be code; return the task's page."""
    task = server.task(HOSTILE, TaskState.RUNNING, started_at=NOW, error=HOSTILE, attempt=1)
    run = WrittenRun(server.store, task.session_id)
    name = "s\"><script>document.title='owned'</script>"
    started = RunStarted(
        model=HOSTILE,
        planner_model="",
        cwd=HOSTILE,
        workspace="",
        backend="host",
        approval_mode="ask",
        tools=(),
        warnings=(HOSTILE,),
        task_id=task.task_id,
    )
    run.write(started)
    run.write(MessageAdded(role="user", content=HOSTILE))
    step = PlanStep(id=name, title=HOSTILE, instruction=HOSTILE)
    run.write(PlanUpdated(plan_id="p", revision=1, hash="h", reason="complete", steps=(step,)))
    run.write(StepStarted(title=HOSTILE), name)
    run.write(ToolStarted(tool_id="c", name=HOSTILE, input={"command": HOSTILE, HOSTILE: HOSTILE}), name)
    run.write(ToolCompleted(tool_id="c", name=HOSTILE, status="ok", exit_code=0, output=f"{HOSTILE}\udc80"), name)
    change = FileChange(path=HOSTILE, status="added", added_lines=1, deleted_lines=0, diff=f"+{HOSTILE}\n@@ {HOSTILE}")
    run.write(FilesChanged(changes=(change,)), name)
    run.write(MessageAdded(role="assistant", content=HOSTILE), name)
    run.write(StepCompleted(status="ok", summary=HOSTILE), name)
    run.write(RunCompleted(subtype="success", is_error=False, exit_code=0, result=HOSTILE, artifacts=(HOSTILE,)))
    server.ask(task, "a-1", HOSTILE, reason=HOSTILE, rule=HOSTILE, cwd=HOSTILE, step_id=name, diff=f"+{HOSTILE}")
    server.ask(task, "q-1", HOSTILE, kind="question", options=(HOSTILE,))
    return f"/tasks/{task.task_id}"


def test_text_of_models_and_commands_never_becomes_code(server: Server, browser: Browser) -> None:
    path = hostile_server(server)
    run_id = "run-20260504123000-abcdef"
    with open_page(browser, server) as page:
        for place in ("/", path, "/runs", f"/runs/{run_id}"):
            page.goto(f"{server.page_url}{place}")
            assert page.title() != "owned"
            assert page.locator("script").count() == 1
            assert page.locator("[onerror], [onload], [href^='javascript' i], main img, pre svg").count() == 0
            assert "49" not in page.locator("main").inner_text()
            assert "\u202e" not in page.content()
            expect(page.locator("main")).to_contain_text("<script>")
        page.goto(f"{server.page_url}{path}")
        shown = page.locator("#ask-a-1 pre").inner_text()
        assert "\\u202eevil\\x1b[2J" in shown
        page.locator("#ask-q-1 button").first.click()
        expect(page.locator("#ask-q-1")).to_have_count(0, timeout=LIMIT_MS)
    assert server.engine.questions.by_id["q-1"].answer == HOSTILE.strip()


def test_the_card_on_the_page_is_the_card_of_the_terminal(server: Server, browser: Browser) -> None:
    with busy_server(server) as task, open_page(browser, server) as page:
        server.ask(task, "a-2", "sed -i s/a/b/ x\nrm y", diff="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", cwd="/w")
        page.goto(f"{server.page_url}/tasks/{task.task_id}")
        shown = page.locator("#ask-a-2 pre").inner_text()
    assert shown == card_text(input_request(server.engine.questions.by_id["a-2"]), step="")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_every_page_is_accessible_and_fits(
    server: Server, browser: Browser, size: tuple[int, int], is_dark: bool
) -> None:
    axe = Axe()
    with busy_server(server) as task, open_page(browser, server, size=size, is_dark=is_dark) as page:
        run = WrittenRun(server.store, task.session_id)
        for place in ("/", f"/tasks/{task.task_id}", "/schedules", "/runs", f"/runs/{run.run_id}", "/docs"):
            page.goto(f"{server.page_url}{place}")
            for details in page.locator("details").all():
                details.evaluate("element => { element.open = true; }")
            assert _violations(axe, page) == [], place
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= size[0], place
    with open_page(browser, server, size=size, is_dark=is_dark, logs_in=False) as page:
        page.goto(f"{server.page_url}/login")
        assert _violations(axe, page) == []


def _violations(axe: Axe, page: Page) -> list[str]:
    found = axe.run(page).response["violations"]
    return [f"{v['id']}: {node['html'][:200]} {node.get('failureSummary', '')}" for v in found for node in v["nodes"]]


def test_a_page_of_another_port_of_this_machine_can_neither_read_nor_act(
    server: Server, browser: Browser, tmp_path: Path
) -> None:
    with serve(tmp_path / "other") as other, busy_server(server), open_page(browser, server) as page:
        attacker = page.context.new_page()
        with other.client(token="") as client:
            assert client.get("/static/page.css").status_code == 200
        attacker.goto(f"{other.page_url}/login")
        outcome = attacker.evaluate(
            """async (target) => {
                const tries = [
                    () => fetch(target + "/api/v1/tasks", { credentials: "include" }),
                    () => fetch(target + "/ui/approvals/a-1", { method: "POST", credentials: "include", mode: "no-cors",
                        body: new URLSearchParams({ decision: "allow" }) }),
                ];
                return Promise.all(tries.map((attempt) => attempt().then(() => "reached", () => "blocked")));
            }""",
            server.page_url,
        )
        attacker.close()
    assert outcome == ["blocked", "blocked"]
    assert server.engine.questions.by_id["a-1"].state == "open"


def test_the_pages_load_nothing_from_elsewhere(server: Server) -> None:
    with busy_server(server) as task, server.client() as client:
        for place in (
            "/",
            f"/tasks/{task.task_id}",
            "/schedules",
            "/runs",
            "/docs",
            "/static/page.css",
            "/static/page.js",
        ):
            text = client.get(place).text
            assert re.findall(r"""(?:src|href|url|from|action)\s*[=(]\s*["']?(?:https?:)?//""", text) == [], place
            assert " style=" not in text
            assert not re.search(r"\son\w+\s*=\s*[\"']", text)


def test_a_form_with_a_mistake_keeps_what_was_typed_and_says_what_is_wrong(server: Server) -> None:
    form = {"prompt": "tidy <up>", "when": "cron", "cron": "61 * * *", "zone": "Europe/Berlin", "model": "openai/x"}
    with server.client() as client:
        reply = client.post("/ui/tasks", data=form)
    assert reply.status_code == 422
    assert "is not a cron expression of five fields" in reply.text
    assert "tidy &lt;up&gt;</textarea>" in reply.text
    for kept in ('value="61 * * *"', 'value="Europe/Berlin"', 'value="openai/x"', '<option value="cron" selected>'):
        assert kept in reply.text


def test_tasks_are_shown_by_their_state_and_with_the_time_they_start(server: Server) -> None:
    with busy_server(server), server.client() as client:
        everything, failed = client.get("/").text, client.get("/?status=failed").text
        assert client.get("/?status=nonsense").status_code == 422
    assert 'href="/?status=failed"' in everything
    assert "starts <time" in everything
    pills = re.findall(r'<span class="text">.*?<span class="pill \w+">(\w+)</span>', failed, re.DOTALL)
    assert set(pills) == {"failed"}


def test_an_error_reads_like_a_sentence_with_its_commands_as_code(server: Server) -> None:
    with server.client() as client:
        page = client.get("/tasks/nothing").text
    assert "<h1>There is no task &#39;nothing&#39;</h1>" in page
    assert "<p><code>agent task list</code> shows them</p>" in page
