"""The pictures of the page in docs/screenshots; `python -m tests.agent.api.page_screenshots` writes them."""

import tempfile
from pathlib import Path

from tests.agent.api.browser import PHONE, chromium, open_page
from tests.agent.api.page_scene import busy_server
from tests.agent.api.served import serve
from tests.house.source_tree import ROOT

FOLDER = ROOT / "docs" / "screenshots"
PICTURES = ("page-task.png", "page-phone.png")
_SIZE = (1100, 900)


def main() -> None:
    """Write all pictures. Look at them before you commit them."""
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder) / "data") as server,
        busy_server(server) as task,
        chromium() as browser,
    ):
        with open_page(browser, server, size=_SIZE) as page:
            page.goto(f"{server.page_url}/tasks/{task.task_id}")
            page.screenshot(path=FOLDER / PICTURES[0], animations="disabled")
        with open_page(browser, server, size=PHONE, is_dark=True) as page:
            page.goto(f"{server.page_url}/tasks/{task.task_id}")
            page.screenshot(path=FOLDER / PICTURES[1], animations="disabled")


if __name__ == "__main__":
    main()
