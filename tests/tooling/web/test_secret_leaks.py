"""Keys do not leave: not in the address of a page, not in a query, not to those who read or search for us."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.tooling.tool_harness import ToolHarness
from tests.tooling.web.site import Site, http_response, redirect
from tooling.approvals.policy import PolicyApprover
from tooling.safety.judges import KNOWN_SECRET
from tooling.web.addresses.url_check import parse_url
from tooling.web.fetch import why_not_shareable
from tooling.web.session import WebSession
from tooling.web.settings import WebSettings

# The one secret that the workplace knows of.
KEY = "correct-horse-battery"
FOUND = http_response(json.dumps({"results": [{"title": "T", "url": "https://example.org/", "content": "words"}]}))


@asynccontextmanager
async def web_workplace(folder: Path, site: Site) -> AsyncIterator[ToolHarness]:
    settings = WebSettings(
        allow_loopback=True, timeout_s=10, keys={"tavily": "tvly"}, search_urls={"tavily": site.url("")}
    )
    work = ToolHarness(folder, approver=PolicyApprover(mode="yolo"), web=WebSession(settings))
    try:
        yield work
    finally:
        await work.executor.close()


@pytest.mark.parametrize(
    "spelled",
    [
        KEY,
        KEY.replace("-", "%2D"),
        KEY.replace("-", "%252D"),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(f"a{KEY}".encode()).decode().rstrip("="),
        "%" + "%".join(f"{byte:02x}" for byte in KEY.encode()),
    ],
)
async def test_a_known_key_is_sent_to_no_page_and_no_provider(tmp_path: Path, spelled: str) -> None:
    async with Site({"*": FOUND}) as site, web_workplace(tmp_path, site) as work:
        for call in (
            await work.call("fetch_page", url=site.url(f"/?x={spelled}")),
            await work.call("fetch_page", url=site.url(f"/{spelled}/index.html")),
            await work.call("search_web", query=f"what is {spelled} for"),
        ):
            assert call.meta.status == "blocked"
            assert KNOWN_SECRET in call.content
            assert KEY not in call.content
        assert site.requests == []


async def test_a_page_that_leads_on_with_a_known_key_is_not_followed(tmp_path: Path) -> None:
    async with Site() as site, web_workplace(tmp_path, site) as work:
        site.pages["/"] = redirect(f"http://localhost:{site.port}/?x={quote(KEY)}")
        result = await work.call("fetch_page", url=site.url("/"))
        assert not result.is_ok
        assert KNOWN_SECRET in result.content
        assert site.paths == ["/"]


async def test_what_looks_like_a_key_is_not_searched_for(tmp_path: Path) -> None:
    async with Site({"*": FOUND}) as site, web_workplace(tmp_path, site) as work:
        token = "ghp_" + "aB3dE6gH9j" * 3 + "aB3dE6"
        assert (await work.call("search_web", query=f"who owns {token}")).meta.status == "blocked"
        assert site.requests == []
        assert (await work.call("search_web", query="how to make a token for an API")).is_ok


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/?access_token=abc",
        "https://example.org/page;jsessionid=1A2B3C",
        "https://example.org/page;JSESSIONID=1A2B3C?x=1",
        "https://example.org/?next=https%3A%2F%2Fx.org%2F%3Ftoken%3Dabc",
        "https://example.org/?next=https://x.org/?token=abc",
        "https://example.org/?a=1;token=abc",
        "https://example.org/?%74oken=abc",
        "https://example.org/?%2574oken=abc",
        "https://example.org/?X-Amz-Signature=abc",
        "https://example.org/?pass=abc",
        "https://example.org/?bearer=abc",
        "https://example.org/reset-password/a1b2c3",
        "https://example.org/token/a1b2c3",
        "https://example.org/invite/a1b2c3",
        "https://discord.example.org/api/webhooks/123456/abc",
        "https://gist.example.org/user/0123456789abcdef0123456789abcdef",
        "https://example.org/share/eyJhbGciOiJIUzI1NiJ9",
    ],
)
def test_a_reader_is_not_told_what_may_be_a_secret(url: str) -> None:
    assert why_not_shareable(parse_url(url)) is not None


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/",
        "https://en.wikipedia.org/wiki/Security_token?action=history",
        "https://docs.example.org/api/tokens.html",
        "https://docs.example.org/authentication/",
        "https://example.org/blog/how-to-reset-a-password",
        "https://example.org/?page=2&sort=asc&q=author",
        "https://github.com/a/b/commit/0123456789abcdef0123456789abcdef01234567",
        "https://example.org/a;v=1/b",
        "https://example.org/articles/2026/02/01/the-keys-of-the-house",
    ],
)
def test_a_reader_may_be_told_what_everybody_may_read(url: str) -> None:
    assert why_not_shareable(parse_url(url)) is None
