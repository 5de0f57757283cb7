"""Keys are never sent out: not in a URL, not in a search query, not to reader services."""

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

# The one secret that the tool harness knows.
KEY = "correct-horse-battery"
FOUND = http_response(json.dumps({"results": [{"title": "T", "url": "https://example.org/", "content": "words"}]}))


@asynccontextmanager
async def web_tools(folder: Path, site: Site) -> AsyncIterator[ToolHarness]:
    settings = WebSettings(
        allow_loopback=True, timeout_s=10, keys={"tavily": "tvly"}, search_urls={"tavily": site.url("")}
    )
    tools = ToolHarness(folder, approver=PolicyApprover(mode="yolo"), web=WebSession(settings))
    try:
        yield tools
    finally:
        await tools.executor.close()


@pytest.mark.parametrize(
    "encoded",
    [
        KEY,
        KEY.replace("-", "%2D"),
        KEY.replace("-", "%252D"),
        base64.b64encode(KEY.encode()).decode(),
        base64.urlsafe_b64encode(f"a{KEY}".encode()).decode().rstrip("="),
        "%" + "%".join(f"{byte:02x}" for byte in KEY.encode()),
    ],
)
async def test_a_known_key_is_never_sent(tmp_path: Path, encoded: str) -> None:
    async with Site({"*": FOUND}) as site, web_tools(tmp_path, site) as tools:
        for call in (
            await tools.call("fetch_page", url=site.url(f"/?x={encoded}")),
            await tools.call("fetch_page", url=site.url(f"/{encoded}/index.html")),
            await tools.call("search_web", query=f"what is {encoded} for"),
        ):
            assert call.meta.status == "blocked"
            assert KNOWN_SECRET in call.content
            assert KEY not in call.content
        assert site.requests == []


async def test_a_redirect_with_a_known_key_is_not_followed(tmp_path: Path) -> None:
    async with Site() as site, web_tools(tmp_path, site) as tools:
        site.pages["/"] = redirect(f"http://localhost:{site.port}/?x={quote(KEY)}")
        result = await tools.call("fetch_page", url=site.url("/"))
        assert not result.is_ok
        assert KNOWN_SECRET in result.content
        assert site.paths == ["/"]


async def test_a_query_that_looks_like_a_key_is_blocked(tmp_path: Path) -> None:
    async with Site({"*": FOUND}) as site, web_tools(tmp_path, site) as tools:
        token = "ghp_" + "aB3dE6gH9j" * 3 + "aB3dE6"
        assert (await tools.call("search_web", query=f"who owns {token}")).meta.status == "blocked"
        assert site.requests == []
        assert (await tools.call("search_web", query="how to make a token for an API")).is_ok


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
def test_a_possible_secret_is_not_sent_to_a_reader(url: str) -> None:
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
def test_a_public_url_may_be_sent_to_a_reader(url: str) -> None:
    assert why_not_shareable(parse_url(url)) is None
