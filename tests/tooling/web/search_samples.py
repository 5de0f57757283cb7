"""Sample responses of the search providers: two results each, no results, and errors."""

import json
from dataclasses import dataclass, field

from tests.tooling.web.site import http_response
from tooling.web.search.errors import SearchFault, SearchFaultKind
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
    """One provider: its request path, its responses and the cost of a search."""

    path: str
    two: object
    none: bytes
    cost_usd: float
    date: str
    # Error responses by the message that must be reported for each.
    errors: dict[str, bytes] = field(default_factory=dict)

    @property
    def success(self) -> bytes:
        return json_response(self.two)


def message(kind: SearchFaultKind, detail: str = "") -> str:
    return str(SearchFault(kind, detail))


def json_response(data: object, *headers: str, status: int = 200) -> bytes:
    return http_response(json.dumps(data), *headers, status=status, kind="application/json")


SAMPLES: dict[SearchProvider, ProviderSample] = {
    "proxy": ProviderSample(
        path="/zai/search?q=windlass",
        two=ZAI,
        none=json_response({**ZAI, "search_result": []}),
        cost_usd=0.0,
        date="2025-03-04",
        errors={
            message("server", "HTTP 500: ZAI not configured"): json_response(
                {"error": "ZAI not configured"}, status=500
            )
        },
    ),
    "tavily": ProviderSample(
        path="/search",
        two=TAVILY,
        none=json_response({**TAVILY, "results": []}),
        cost_usd=0.008,
        date="Tue, 04 Mar 2025 10:00:00 GMT",
        errors={
            message("auth", "HTTP 401: Unauthorized: missing or invalid API key."): json_response(
                {"detail": {"error": "Unauthorized: missing or invalid API key."}}, status=401
            ),
            message("quota", "HTTP 432: This request exceeds your plan's set usage limit."): json_response(
                {"detail": {"error": "This request exceeds your plan's set usage limit."}}, status=432
            ),
            message("bad_request", "HTTP 400: Query is too long."): json_response(
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
        errors={
            message("quota", "HTTP 402: Account balance not enough to run this query."): json_response(
                {
                    "code": 402,
                    "name": "InsufficientBalanceError",
                    "status": 40203,
                    "message": "Account balance not enough to run this query.",
                },
                status=402,
            ),
            message("auth", "HTTP 401: Invalid API key"): json_response(
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
        errors={
            message("auth", "HTTP 401: Authentication Failed"): json_response(
                {"error": {"code": "1000", "message": "Authentication Failed"}}, status=401
            ),
            message("quota", "HTTP 429: Insufficient balance, please recharge."): json_response(
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
        errors={
            message("no_json", "HTTP 403"): http_response("<html>Forbidden</html>", status=403),
            message("engines"): json_response({**SEARXNG, "results": []}),
        },
    ),
    "brave": ProviderSample(
        path="/res/v1/web/search?q=windlass&count=8&result_filter=web&text_decorations=false",
        two=BRAVE,
        none=json_response({"type": "search", "query": {"original": "windlass"}}),
        cost_usd=0.005,
        date="2025-03-04T10:00:00",
        errors={
            message("auth", "HTTP 422: The provided subscription token is invalid."): json_response(
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
# Responses that are errors for every provider, each with the start of the message that must be reported.
COMMON_ERRORS: list[tuple[str, bytes]] = [
    (message("server", "HTTP 503"), http_response("upstream", status=503)),
    (message("wrong_address", "HTTP 404"), http_response("not here", status=404)),
    (message("malformed"), http_response("<html>maintenance</html>")),
    (message("malformed"), json_response({"something": "else"})),
    (message("malformed"), json_response([1, 2])),
    (message("redirects"), http_response("", "Location: https://example.org/", status=302)),
]
