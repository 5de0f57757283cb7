"""A real Chromium for tests of the page, which talks to nobody but the server of the test."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.agent.api.served import Server

CHROMIUM = "/usr/bin/chromium"
# Without these, Chromium looks for its maker's servers, and as root it does not start.
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
DESKTOP, PHONE = (1280, 900), (390, 844)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Chromium until the block ends."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def open_page(
    browser: Browser,
    server: Server,
    *,
    size: tuple[int, int] = DESKTOP,
    is_dark: bool = False,
    logs_in: bool = True,
    has_javascript: bool = True,
) -> Iterator[Page]:
    """Open the page in a browser without history; problems that it reports fail the test."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if is_dark else "light",
        java_script_enabled=has_javascript,
        timezone_id="Europe/Berlin",
        locale="en-GB",
        reduced_motion="reduce",
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: _check_address(request.url, server, problems))
    try:
        if logs_in:
            page.goto(f"{server.page_url}/login#{server.sessions.new_code()}")
            page.wait_for_url(f"{server.page_url}/")
        yield page
    finally:
        context.close()
    assert problems == []


def save_picture(page: Page, path: Path) -> None:
    """Save the whole page as a PNG."""
    page.screenshot(path=path, full_page=True, animations="disabled")


def _check_address(url: str, server: Server, problems: list[str]) -> None:
    if not url.startswith((f"{server.page_url}/", "data:")):
        problems.append(f"the page asks for {url}")
