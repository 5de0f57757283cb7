"""The form of every reply, errors included: `{code, message, data}`, never a traceback."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Generic, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from agent.service.task import NotOpen
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, InputError, SessionBusy, UsageError
from tooling.contract.json_codec import encode

T = TypeVar("T")
_JSON_HINT = "send JSON, with the header Content-Type: application/json"


class Reply(BaseModel, Generic[T]):
    """The reply of every endpoint; `code` is 0, or the HTTP status of an error."""

    code: int = 0
    message: str = "ok"
    data: T


class Problem(BaseModel):
    """The data of an error."""

    hint: str = ""
    errors: tuple[str, ...] = ()


class NotFound(AgentError):
    """The object named in a request does not exist."""


class Forbidden(AgentError):
    """The request is not allowed for any client."""


class Conflict(AgentError):
    """The request is not possible in the current state."""


# Errors of the request; every other AgentError is about the state of the task or of this machine.
_STATUSES: Sequence[tuple[type[AgentError], HTTPStatus]] = (
    (NotFound, HTTPStatus.NOT_FOUND),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (NotOpen, HTTPStatus.CONFLICT),
    (InputError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (UsageError, HTTPStatus.BAD_REQUEST),
    (SessionBusy, HTTPStatus.CONFLICT),
)


class JsonResponse(Response):
    """JSON without escaping of non-ASCII text; lone surrogates, which commands may print, are escaped."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Return the body."""
        return json.dumps(encode(content), ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")


def ok(data: object, status: int = HTTPStatus.OK) -> JsonResponse:
    """Return a successful reply."""
    return JsonResponse({"code": 0, "message": "ok", "data": data}, status_code=status)


def error_reply(
    status: int,
    message: str,
    *,
    hint: str = "",
    errors: Sequence[str] = (),
    headers: Mapping[str, str] | None = None,
) -> JsonResponse:
    """Return the reply of a failed request."""
    data = {"hint": hint, "errors": list(errors)}
    return JsonResponse({"code": int(status), "message": message, "data": data}, status_code=status, headers=headers)


def status_of(error: AgentError) -> HTTPStatus:
    """Return the HTTP status for an error."""
    if known := next((status for kind, status in _STATUSES if isinstance(error, kind)), None):
        return known
    return HTTPStatus.SERVICE_UNAVAILABLE if error.exit_code == exit_codes.RETRY_LATER else HTTPStatus.CONFLICT


async def on_agent_error(request: Request, error: Exception) -> Response:
    """Reply to a request that fails with an AgentError."""
    assert isinstance(error, AgentError)
    return error_reply(status_of(error), error.message, hint=error.hint)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Reply to unknown paths and methods."""
    assert isinstance(error, HTTPException)
    return error_reply(error.status_code, str(error.detail), headers=error.headers)


async def on_invalid_request(request: Request, error: Exception) -> Response:
    """Reply to a request without the documented form; its values are not repeated."""
    assert isinstance(error, RequestValidationError)
    errors = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()]
    is_json = request.headers.get("content-type", "").partition(";")[0].strip().endswith("json")
    is_body_wrong = any(problem["loc"] == ("body",) for problem in error.errors())
    hint = _JSON_HINT if is_body_wrong and not is_json else ""
    return error_reply(HTTPStatus.UNPROCESSABLE_ENTITY, "the request is not valid", hint=hint, errors=errors[:20])


async def on_bug(request: Request, error: Exception) -> Response:
    """Reply to a request that hit a bug; the traceback goes to the log, not to the client."""
    return error_reply(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; the server's log has the details")
