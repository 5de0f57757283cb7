"""search_web takes keys from the environment, reports costs, and never shows or stores a key."""

import json

import pytest

from tests.cli.terminal_user import User, one_step, step_call, step_reply
from tests.tooling.web.search_samples import SAMPLES, json_response
from tests.tooling.web.site import http_response
from tests.tooling.web.threaded_site import serve_in_thread

pytestmark = pytest.mark.slow

KEY = "tvly-SENTINEL-0123456789"


def test_a_search_uses_the_provider_whose_key_is_set(user: User) -> None:
    with serve_in_thread({"*": SAMPLES["tavily"].success}) as site:
        urls = json.dumps({"tavily": site.url("")})
        ended = user.agent("tools", "call", "search_web", "query=windlass", TAVILY_API_KEY=KEY, AGENT_SEARCH_URLS=urls)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout.startswith('<web origin="search by tavily">\n1. Winch\n')
    assert site.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(("name", "variable"), [("proxy", "PROXY_URL"), ("searxng", "SEARXNG_URL")])
def test_a_configured_local_address_needs_no_permission(user: User, name: str, variable: str) -> None:
    with serve_in_thread({"*": SAMPLES[name].success}) as site:  # type: ignore[index]
        ended = user.agent("tools", "call", "search_web", "query=windlass", **{variable: site.url("/")})
    assert (ended.exit_code, site.paths) == (0, [SAMPLES[name].path])  # type: ignore[index]


def test_without_a_key_the_error_names_the_settings(user: User) -> None:
    ended = user.agent("tools", "call", "search_web", "query=windlass")
    assert (ended.exit_code, ended.stdout) == (1, "")
    for name in ("PROXY_URL", "TAVILY_API_KEY", "JINA_API_KEY", "ZAI_API_KEY", "keys.tavily", "search_urls.proxy"):
        assert name in ended.stderr


def test_a_denied_or_empty_query_is_an_error(user: User) -> None:
    denied = user.agent("tools", "call", "search_web", "query=x", "--deny", "search_web", TAVILY_API_KEY=KEY)
    assert (denied.exit_code, "The rule --deny search_web forbids it" in denied.stderr) == (57, True)
    assert user.agent("tools", "call", "search_web", "query= ", TAVILY_API_KEY=KEY).stderr == "The query is empty.\n"


def test_a_run_counts_search_costs_and_stores_no_key(user: User) -> None:
    refusal = json_response({"detail": {"error": f"the key {KEY} is wrong"}}, status=401)
    replies = one_step(
        step_call("s1", "search_web", query="windlass"),
        step_call("s1", "search_web", query="rope"),
        step_reply("s1", "Found."),
    )
    with serve_in_thread({"/search": refusal, "*": SAMPLES["zai"].success}) as site:
        urls = json.dumps({"tavily": site.url(""), "zai": site.url("")})
        flags = ("--output-format", "stream-json", "--session", "s", "--set", "max_budget_usd=1")
        ended = user.agent(
            "run", "--model", user.script(*replies), *flags, "search", TAVILY_API_KEY=KEY, ZAI_API_KEY=KEY[::-1],
            AGENT_SEARCH_URLS=urls,
        )  # fmt: skip
    assert ended.exit_code == 0, ended.stderr
    result = ended.events[-1]
    assert result["total_cost_usd"] == pytest.approx(0.02)
    assert result["model_usage"]["search_web"]["cost_usd"] == pytest.approx(0.02)  # type: ignore[index]
    stored = "".join(path.read_text(errors="replace") for path in user.data.rglob("*") if path.is_file())
    for text in (ended.stdout, ended.stderr, stored):
        assert KEY not in text
        assert KEY[::-1] not in text
    assert "tavily failed: it rejected the key" in ended.stdout


def test_a_search_that_exhausts_the_budget_ends_the_run(user: User) -> None:
    replies = one_step(step_call("s1", "search_web", query="windlass"), step_reply("s1", "never said"))
    with serve_in_thread({"*": SAMPLES["zai"].success}) as site:
        ended = user.agent(
            "run", "--model", user.script(*replies), "--max-budget-usd", "0.005", "search",
            ZAI_API_KEY=KEY, AGENT_SEARCH_URLS=json.dumps({"zai": site.url("")}),
        )  # fmt: skip
    assert ended.exit_code == 56


@pytest.mark.parametrize("order", ["brave,tavily", "[]", '["google"]'])
def test_the_provider_order_is_a_setting(user: User, order: str) -> None:
    with serve_in_thread({"*": http_response("", status=404)}) as site:
        urls = json.dumps({"tavily": site.url(""), "brave": site.url("")})
        ended = user.agent(
            "tools", "call", "search_web", "query=x", "--set", f"search_order={order}",
            TAVILY_API_KEY=KEY, BRAVE_API_KEY=KEY, AGENT_SEARCH_URLS=urls,
        )  # fmt: skip
    if order == "brave,tavily":
        assert [path.partition("?")[0] for path in site.paths] == ["/res/v1/web/search", "/search"]
    elif order == "[]":
        assert "No search provider is set up" in ended.stderr
    else:
        assert (ended.exit_code, "search_order" in ended.stderr) == (2, True)


def test_doctor_lists_the_available_providers(user: User) -> None:
    assert "TAVILY_API_KEY (keys.tavily)" in user.agent("doctor").stdout
    report = user.agent("doctor", BRAVE_API_KEY=KEY, SEARXNG_URL="http://localhost:8888").stdout
    assert "searxng, brave" in report
    assert KEY not in report
