"""Details of the layout in a real Chromium: what belongs together is read together."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from agent.protocol.events import RunStarted, StepStarted, ToolStarted
from agent.service.task import Schedule, TaskRequest, TaskState
from tests.agent.api.browser import PHONE, chromium, open_page
from tests.agent.api.fake_engine import NOW, result_of
from tests.agent.api.served import Server, WrittenRun, serve
from tests.programs import needs

pytestmark = [pytest.mark.slow, needs("chromium")]

STARTED = RunStarted(
    model="m", planner_model="m", cwd="/", workspace="/", backend="host", approval_mode="ask", tools=(), task_id="t1"
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


def test_on_a_phone_a_long_command_stands_beside_its_mark(server: Server, browser: Browser) -> None:
    run = WrittenRun(server.store, "s1")
    run.write(STARTED)
    run.write(StepStarted(cache="miss"), step="lead")
    command = "git push --force origin main && rm -rf build && echo a command that is longer than a line"
    run.write(ToolStarted(tool_id="c1", name="run_command", input={"command": command}), step="lead")
    with run.running(), open_page(browser, server, size=PHONE) as page:
        page.goto(f"{server.page_url}/runs/{run.run_id}")
        line = page.locator(".call summary")
        expect(line).to_be_visible()
        mark, code = line.locator(".mark").bounding_box(), line.locator("code").bounding_box()
        assert mark and code
        assert code["x"] > mark["x"] + mark["width"]
        assert code["y"] < mark["y"] + mark["height"]


def test_the_last_run_of_a_schedule_and_its_state_are_two_words(server: Server, browser: Browser) -> None:
    request = TaskRequest(prompt="look", session_id="s1")
    made = result_of(
        server.engine.schedules.add(Schedule(name="hourly", cron="0 * * * *", zone="UTC", request=request))
    )
    server.engine.schedules.by_name["hourly"] = replace(
        made, last_run_at=NOW, last_task_id="hourly@1", last_state=TaskState.COMPLETED
    )
    with open_page(browser, server) as page:
        page.goto(f"{server.page_url}/schedules")
        times = page.locator("#schedule-list time")
        expect(times).to_have_count(2)
        assert f"{times.nth(1).inner_text()} completed" in page.locator("#schedule-list").inner_text()
