"""The page when something goes otherwise than planned: a stray Enter, a link in an open tab, a server that is away."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.agent.api.browser import chromium, open_page
from tests.agent.api.page_scene import busy_server
from tests.agent.api.served import Server, serve
from tests.programs import needs

pytestmark = [pytest.mark.slow, needs("chromium")]

LIMIT_MS = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serve(tmp_path / "data") as running:
        yield running
        assert running.bugs == []


def test_enter_after_a_reason_allows_nothing(server: Server, browser: Browser) -> None:
    with busy_server(server) as task, open_page(browser, server) as page:
        page.goto(f"{server.page_url}/tasks/{task.task_id}")
        page.locator(".ask summary").click()
        reason = page.get_by_label("Tell the model why")
        reason.fill("no, keep it")
        reason.press("Enter")
        page.wait_for_timeout(300)
        assert server.engine.questions.by_id["a-1"].state == "open"
        expect(reason).to_have_value("no, keep it")
        page.get_by_role("button", name="Deny").click()
        expect(page.locator(".ask")).to_have_count(0)
    decided = server.engine.questions.by_id["a-1"]
    assert (decided.answer, decided.remark) == ("deny", "no, keep it")


def test_the_printed_link_logs_in_also_in_a_tab_that_shows_the_login(server: Server, browser: Browser) -> None:
    with open_page(browser, server, logs_in=False) as page:
        page.goto(f"{server.page_url}/login")
        page.goto(f"{server.page_url}/login#{server.sessions.new_code()}")
        page.wait_for_url(f"{server.page_url}/", timeout=LIMIT_MS)


def test_a_page_that_cannot_reach_the_server_says_so_until_it_can(server: Server, browser: Browser) -> None:
    with busy_server(server) as task:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{server.page_url}/login#{server.sessions.new_code()}")
        page.wait_for_url(f"{server.page_url}/")
        page.goto(f"{server.page_url}/tasks/{task.task_id}")
        notice = page.get_by_text("The server does not answer.")
        expect(notice).to_be_hidden()
        context.set_offline(True)
        expect(notice).to_be_visible(timeout=LIMIT_MS)
        context.set_offline(False)
        expect(notice).to_be_hidden(timeout=LIMIT_MS)
        context.close()
