"""Reader services: used only when configured, and only for addresses that may be shared."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tooling.web.site import Site, http_response
from tests.tooling.web.test_fetch_page import LOCAL, fetch, web_tools
from tooling.web.addresses.url_check import parse_url
from tooling.web.fetch import (
    JINA_READER_URL,
    not_shared,
    parse_reader_response,
    reader_request,
    reader_url,
    why_not_shareable,
)
from tooling.web.fetch_result import UNFETCHABLE
from tooling.web.http.messages import WebFault, WebResponse
from tooling.web.page import VIA_READER
from tooling.web.settings import WebSettings

REPLY = json.dumps(
    {"code": 200, "data": {"title": "By reader", "content": "What the reader saw", "publishedTime": "2026"}}
)

SECRET_URLS = """
    http://127.0.0.1/ http://localhost:3000/ http://a.localhost/ http://[::1]/x
    https://example.org/?token=abc https://example.org/?api_key=1 https://example.org/?X-Amz-Signature=ab&X-Amz-Date=1
    https://example.org/?password=x https://example.org/cb?code=abc&state=1 https://example.org/?sig=x https://example.org/?PWD=x
    https://example.org/?session_id=1 https://example.org/reset?reset_link=x https://example.org/?jwt=x
    https://example.org/ghp_abcdefghijklmnopqrstuvwxyz0123456789
    https://hooks.example.org/services/T00000000/B00000000/XyZ123abcDEF456ghiJKL789
    https://docs.example.org/document/d/1aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abcd/edit
"""
OPEN_URLS = """
    https://example.org/ https://example.org/a/long-path-with-words-and-2026/index.html https://example.org/?q=words&page=2
    https://example.org/commit/0123456789abcdef0123456789abcdef01234567 https://example.org/?author=me&lang=en
    https://example.org/item/123e4567-e89b-12d3-a456-426614174000 https://example.org/watch?v=dQw4w9WgXcQ
    https://en.example.org/wiki/Donaudampfschifffahrtsgesellschaftskapitän
"""


@pytest.mark.parametrize("url", SECRET_URLS.split())
def test_private_addresses_and_secrets_are_not_shareable(url: str) -> None:
    assert why_not_shareable(parse_url(url, allow_loopback=True))


@pytest.mark.parametrize("url", OPEN_URLS.split())
def test_public_addresses_are_shareable(url: str) -> None:
    assert why_not_shareable(parse_url(url)) is None


def test_there_is_no_reader_without_configuration() -> None:
    assert reader_url(WebSettings()) == ""
    assert reader_url(WebSettings(keys={"jina": "k"})) == JINA_READER_URL
    assert reader_url(WebSettings(keys={"jina": "k"}, reader="off")) == ""
    assert reader_url(WebSettings(keys={"jina": "k"}, reader_url="https://r.example/")) == "https://r.example/"


def test_the_key_is_sent_only_to_its_own_service() -> None:
    target = parse_url("https://example.org/a?b=1")
    jina = reader_request(target, WebSettings(keys={"jina": "k"}))
    assert jina.url == "https://r.jina.ai/https://example.org/a?b=1"
    assert jina.headers["Authorization"] == "Bearer k"
    other = reader_request(target, WebSettings(keys={"jina": "k"}, reader_url="https://r.example/?u="))
    assert "Authorization" not in other.headers
    assert other.is_trusted


@pytest.mark.parametrize(
    ("kind", "body", "text"),
    [
        ("application/json", REPLY, "What the reader saw"),
        ("application/json; charset=utf-8", json.dumps({"content": "flat"}), "flat"),
        ("text/markdown", "# As it is", "# As it is"),
    ],
)
def test_responses_of_readers_are_parsed(kind: str, body: str, text: str) -> None:
    response = WebResponse(url="https://r.example/", status=200, headers={"content-type": kind}, body=body.encode())
    assert parse_reader_response(response).text == text


@pytest.mark.parametrize(
    ("status", "body"), [(500, REPLY), (200, "[]"), (200, "{}"), (200, '{"data": null}'), (200, "x")]
)
def test_invalid_responses_of_readers_are_faults(status: int, body: str) -> None:
    headers = {"content-type": "application/json"}
    with pytest.raises(WebFault):
        parse_reader_response(WebResponse(url="https://r.example/", status=status, headers=headers, body=body.encode()))


async def test_a_refused_address_is_not_sent_to_the_reader(tmp_path: Path) -> None:
    async with Site({"*": http_response(REPLY, kind="application/json")}) as reader:
        settings = WebSettings(reader_url=reader.url("/read/"), connect_timeout_s=0.3, timeout_s=3)
        async with web_tools(tmp_path, settings, hosts={"page_example": "192.0.2.1"}) as tools:
            refused = await tools.call("fetch_page", url="https://page.example/")
        assert UNFETCHABLE in refused.content
        assert reader.requests == []


@pytest.mark.parametrize("reader_mode", ["fallback", "always", "off"])
async def test_each_mode_uses_the_reader_as_configured(
    tmp_path: Path, reader_mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Loopback plays the public web here; the rule against it has its own test.
    monkeypatch.setattr("tooling.web.fetch.why_not_shareable", lambda target: None)

    async def public(host: str, port: int, **_: object) -> tuple[str, ...]:
        return ("93.184.216.34",)

    monkeypatch.setattr("tooling.web.fetch.resolve_public", public)
    pages = {
        "/ok": http_response("direct", kind="text/plain"),
        "/blocked": http_response("no", status=403),
        "/gone": http_response("x", status=404),
    }
    pages["/app"] = http_response("<html><body><div id=app></div><script>go()</script></body></html>")
    async with Site({"*": http_response(REPLY, kind="application/json")}) as reader, Site(pages) as site:
        settings = replace(LOCAL, reader=reader_mode, reader_url=reader.url("/read/"))  # type: ignore[arg-type]
        texts = {path: (await fetch(tmp_path, site.url(path), settings)).content for path in pages}
        forced = await fetch(tmp_path, site.url("/ok"), settings, method="reader")
        raw = await fetch(tmp_path, site.url("/blocked"), settings, method="raw")
    read = {path for path, text in texts.items() if "What the reader saw" in text}
    assert read == {"fallback": {"/blocked", "/app"}, "always": set(pages), "off": set()}[reader_mode]
    assert ("What the reader saw" in forced.content) is (reader_mode != "off")
    assert "403" in raw.content
    if reader_mode != "off":
        assert f"/read/{site.url('/blocked')}" in reader.paths
        assert "Title: By reader" in texts["/blocked"]
        assert f"[{VIA_READER}]" in texts["/blocked"]


async def test_a_private_page_never_reaches_a_reader(tmp_path: Path) -> None:
    async with (
        Site({"*": http_response(REPLY, kind="application/json")}) as reader,
        Site({"/": http_response("no", status=403)}) as site,
    ):
        settings = replace(LOCAL, reader_url=reader.url("/"))
        for reader_mode in ("fallback", "always"):
            direct = await fetch(tmp_path, site.url(), replace(settings, reader=reader_mode))  # type: ignore[arg-type]
            assert "403" in direct.content
        forced = await fetch(tmp_path, site.url(), settings, method="reader")
        assert not_shared("") in forced.content
        hosts = {"inside_example": "10.0.0.1"}
        for url in ("https://inside.example/", "https://unknown.example/", "https://inside.example/?token=x"):
            async with web_tools(tmp_path, replace(settings, reader="always"), hosts=hosts) as tools:
                await tools.call("fetch_page", url=url)
                await tools.call("fetch_page", url=url, method="reader")
    assert reader.requests == []
