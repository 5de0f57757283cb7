"""Answers of the search providers as they send them: two results each, nothing found, and how each says no."""

import json
from dataclasses import dataclass, field

from tests.tooling.web.site import http_response
from tooling.web.settings import SearchProvider

KEY = "key-0123456789"
WINCH, ROPE = "https://example.org/winch", "https://example.org/rope"

TAVILY = {
    "query": "windlass",
    "answer": None,
    "follow_up_questions": None,
    "images": [],
    "results": [
        {"title": "Winch", "url": WINCH, "content": "A winch  pulls.", "score": 0.91, "raw_content": None},
        {
            "title": "Rope",
            "url": ROPE,
            "content": "A rope is pulled.",
            "score": 0.4,
            "published_date": "Tue, 04 Mar 2025 10:00:00 GMT",
        },
    ],
    "response_time": 1.09,
    "usage": {"credits": 1},
    "request_id": "123e4567-e89b-12d3-a456-426614174111",
}
JINA = {
    "code": 200,
    "status": 20000,
    "data": [
        {"title": "Winch", "url": WINCH, "description": "A winch pulls.", "content": "", "usage": {"tokens": 1000}},
        {"title": "Rope", "url": ROPE, "description": "A rope is pulled.", "date": "Mar 4, 2025", "content": ""},
    ],
    "meta": {"usage": {"tokens": 10000}},
}
ZAI = {
    "id": "20250304100000abc",
    "created": 1741082400,
    "search_result": [
        {
            "title": "Winch",
            "content": "A winch pulls.",
            "link": WINCH,
            "media": "Example",
            "icon": "",
            "refer": "ref_1",
        },
        {
            "title": "Rope",
            "content": "A rope is pulled.",
            "link": ROPE,
            "media": "",
            "icon": "",
            "refer": "ref_2",
            "publish_date": "2025-03-04",
        },
    ],
}
SEARXNG = {
    "query": "windlass",
    "number_of_results": 0,
    "results": [
        {"url": WINCH, "title": "Winch", "content": "A winch pulls.", "engine": "mojeek", "score": 4.0},
        {"url": ROPE, "title": "Rope", "content": "A rope is pulled.", "publishedDate": "2025-03-04T10:00:00"},
    ],
    "answers": [],
    "corrections": [],
    "infoboxes": [],
    "suggestions": ["windlass anchor"],
    "unresponsive_engines": [["duckduckgo", "CAPTCHA"]],
}
BRAVE = {
    "type": "search",
    "query": {"original": "windlass", "more_results_available": True},
    "web": {
        "type": "search",
        "results": [
            {"title": "Winch", "url": WINCH, "description": "A winch pulls.", "meta_url": {"hostname": "example.org"}},
            {"title": "Rope", "url": ROPE, "description": "A rope is pulled.", "page_age": "2025-03-04T10:00:00"},
        ],
        "family_friendly": True,
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSample:
    """One provider: what it sends for two results and for none, its costs, and how it answers faults."""

    path: str
    two: object
    none: bytes
    cost_usd: float
    date: str
    # What it answers, and what is told of it.
    refusals: dict[str, bytes] = field(default_factory=dict)

    @property
    def success(self) -> bytes:
        return json_response(self.two)


def json_response(data: object, *headers: str, status: int = 200) -> bytes:
    return http_response(json.dumps(data), *headers, status=status, kind="application/json")


SAMPLES: dict[SearchProvider, ProviderSample] = {
    "proxy": ProviderSample(
        path="/zai/search?q=windlass",
        two=ZAI,
        none=json_response({**ZAI, "search_result": []}),
        cost_usd=0.0,
        date="2025-03-04",
        refusals={
            "it failed (HTTP 500: ZAI not configured)": json_response({"error": "ZAI not configured"}, status=500)
        },
    ),
    "tavily": ProviderSample(
        path="/search",
        two=TAVILY,
        none=json_response({**TAVILY, "results": []}),
        cost_usd=0.008,
        date="Tue, 04 Mar 2025 10:00:00 GMT",
        refusals={
            "it refused the key (HTTP 401: Unauthorized: missing or invalid API key.)": json_response(
                {"detail": {"error": "Unauthorized: missing or invalid API key."}}, status=401
            ),
            "the account has no credit left (HTTP 432: This request exceeds your plan's set usage limit.)": json_response(  # noqa: E501
                {"detail": {"error": "This request exceeds your plan's set usage limit."}}, status=432
            ),
            "it did not accept the query (HTTP 400: Query is too long.)": json_response(
                {"detail": {"error": "Query is too long."}}, status=400
            ),
        },
    ),
    "jina": ProviderSample(
        path="/?q=windlass&num=8",
        two=JINA,
        none=json_response(
            {
                "code": 422,
                "name": "AssertionFailureError",
                "status": 42206,
                "message": "No search results available for query windlass",
                "data": None,
            },
            status=422,
        ),
        cost_usd=0.0005,
        date="Mar 4, 2025",
        refusals={
            "the account has no credit left (HTTP 402: Account balance not enough to run this query.)": json_response(
                {
                    "code": 402,
                    "name": "InsufficientBalanceError",
                    "status": 40203,
                    "message": "Account balance not enough to run this query.",
                },
                status=402,
            ),
            "it refused the key (HTTP 401: Invalid API key)": json_response(
                {"code": 401, "name": "AuthenticationFailedError", "message": "Invalid API key"}, status=401
            ),
        },
    ),
    "zai": ProviderSample(
        path="/paas/v4/web_search",
        two=ZAI,
        none=json_response({**ZAI, "search_result": []}),
        cost_usd=0.01,
        date="2025-03-04",
        refusals={
            "it refused the key (HTTP 401: Authentication Failed)": json_response(
                {"error": {"code": "1000", "message": "Authentication Failed"}}, status=401
            ),
            "the account has no credit left (HTTP 429: Insufficient balance, please recharge.)": json_response(
                {"error": {"code": "1113", "message": "Insufficient balance, please recharge."}}, status=429
            ),
        },
    ),
    "searxng": ProviderSample(
        path="/search?q=windlass&format=json",
        two=SEARXNG,
        none=json_response({**SEARXNG, "results": [], "unresponsive_engines": []}),
        cost_usd=0.0,
        date="2025-03-04T10:00:00",
        refusals={
            "it does not give JSON; its settings.yml must name json under search.formats (HTTP 403)": http_response(
                "<html>Forbidden</html>", status=403
            ),
            "none of its engines answered": json_response({**SEARXNG, "results": []}),
        },
    ),
    "brave": ProviderSample(
        path="/res/v1/web/search?q=windlass&count=8&result_filter=web&text_decorations=false",
        two=BRAVE,
        none=json_response({"type": "search", "query": {"original": "windlass"}}),
        cost_usd=0.005,
        date="2025-03-04T10:00:00",
        refusals={
            "it refused the key (HTTP 422: The provided subscription token is invalid.)": json_response(
                {
                    "type": "ErrorResponse",
                    "error": {
                        "status": 422,
                        "code": "SUBSCRIPTION_TOKEN_INVALID",
                        "detail": "The provided subscription token is invalid.",
                    },
                },
                status=422,
            ),
        },
    ),
}
EVERYWHERE: dict[str, bytes] = {
    "it failed (HTTP 503)": http_response("upstream", status=503),
    "there is no search at its address (HTTP 404)": http_response("not here", status=404),
    "its answer cannot be understood": http_response("<html>maintenance</html>"),
    "its answer cannot be understood (there is no list": json_response({"something": "else"}),
    "its answer cannot be understood (there is no list ": json_response([1, 2]),
    "it sends its callers elsewhere": http_response("", "Location: https://example.org/", status=302),
}
