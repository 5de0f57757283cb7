"""One fetch_page call: fetch the page and build the result for the model and the user."""

import asyncio
from dataclasses import replace
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from tooling.contract.action import Action, ActionGate
from tooling.contract.context import ExecCtx
from tooling.contract.result import REFUSED, TIMED_OUT, CallStatus, ToolError, ToolMeta, ToolResult
from tooling.contract.web import FetchCall
from tooling.finish import reserve_output
from tooling.images.prepare import keep_image
from tooling.web.addresses.url_check import Target, with_scheme
from tooling.web.fetch import Fetcher, PageRequest, PageStatusError
from tooling.web.http.messages import RedirectGate, WebFault
from tooling.web.page import (
    Page,
    PagePart,
    WebImage,
    excerpt,
    format_status,
    render_from_offset,
    render_image,
    render_passages,
)

FAULT_HINTS = {
    "refused": "Only public addresses can be fetched.",
    "unknown_host": "Check the spelling of the host.",
    "redirects": "Fetch the address it redirects to, if that is what you want.",
}
STATUS_HINTS = {
    401: "It requires a login, which this tool does not have.",
    403: "The server denies access.",
    404: "Look for the right address, for example with search_web.",
    429: "Too many requests; try again later.",
}
OTHER_HOST = "redirects to another host"
UNFETCHABLE = "could not be fetched"
UNREADABLE = "could not be read"
BEYOND_END = "is beyond its end."


async def fetch_page(
    call: FetchCall, fetcher: Fetcher, ctx: ExecCtx, gate: ActionGate, *, max_chars: int
) -> ToolResult:
    """Fetch a page and return the requested part; a failure raises ToolError with one sentence and a hint."""
    request = PageRequest(
        url=with_scheme(call.url), mode=call.mode, use_cache=call.use_cache, is_continued=call.offset > 0
    )
    try:
        page = await fetcher.fetch(request, _redirect_gate(call, ctx, gate))
    except WebFault as fault:
        raise _fault_error(call, fault) from fault
    except PageStatusError as error:
        raise _status_error(error) from error
    if page.document.problem:
        raise ToolError(f"{page.url} {UNREADABLE}: {page.document.problem}.")
    if page.image:
        return await _image_result(page, page.image, ctx)
    return await _build_result(page, call, fetcher, max_chars, ctx)


def _redirect_gate(call: FetchCall, ctx: ExecCtx, gate: ActionGate) -> RedirectGate:
    """Return the gate for redirects to other hosts: they need the same approval as the first host."""

    async def refusal(target: Target) -> str | None:
        action = Action(tool=call.tool, effect="web", subject=target.url, cwd=ctx.working_dir, url=target.url)
        # Each approval request of a call needs its own id.
        return await gate.refusal(action, replace(ctx, call_id=f"{ctx.call_id}-{target.host}"))

    return refusal


async def _image_result(page: Page, fetched: WebImage, ctx: ExecCtx) -> ToolResult:
    name = PurePosixPath(unquote(urlsplit(page.url).path)).name or "image"
    image = await asyncio.to_thread(keep_image, fetched.data, fetched.header, name, ctx)
    return ToolResult(render_image(page, image), display=f"Fetched {page.url} {image.label}", images=(image,))


async def _build_result(page: Page, call: FetchCall, fetcher: Fetcher, max_chars: int, ctx: ExecCtx) -> ToolResult:
    offset = max(call.offset, 0)
    if offset and offset >= len(page.text):
        raise ToolError(f"{page.url} has {len(page.text)} characters; offset {offset} {BEYOND_END}")
    query = "" if offset else call.query.strip()
    passages = await fetcher.passages(page, query) if query else []

    def render(saved_to: str | None) -> PagePart:
        if query:
            return render_passages(page, query, passages, saved_to=saved_to)

        return render_from_offset(page, offset, max_chars=max_chars, saved_to=saved_to)

    # Reserve the file before rendering a text that is surely too long: rendering twice costs as much as redacting it.
    path = reserve_output(ctx) if query or offset or len(page.text) > max_chars else None
    part = render(str(path) if path else None)
    if not part.is_complete and path is None and (path := reserve_output(ctx)):
        part = render(str(path))
    meta = ToolMeta(output_path=str(path), full_text=page.text) if path else ToolMeta()
    size = f"{len(page.text)} characters"
    display = f"Fetched {page.url} ({size}{', from the cache' if page.is_from_cache else ''})"
    return ToolResult(part.content, display=display, meta=meta)


def _fault_error(call: FetchCall, fault: WebFault) -> ToolError:
    if fault.kind == "denied":
        return ToolError(f"{call.url} {OTHER_HOST}. {fault}", status="denied", exit_code=REFUSED)
    status: CallStatus = "timeout" if fault.kind == "timeout" else "error"
    hint = FAULT_HINTS.get(fault.kind, "")
    message = f"{call.url} {UNFETCHABLE}: {fault}. {hint}".strip()
    return ToolError(message, status=status, exit_code=TIMED_OUT if fault.kind == "timeout" else 1)


def _status_error(error: PageStatusError) -> ToolError:
    hint = STATUS_HINTS.get(error.status, "")
    wait = f" {retry_hint(error.retry_after)}" if error.retry_after else ""
    body = excerpt(error.page)
    message = f"{error.page.url} returned {format_status(error.status)}. {hint}{wait}".strip()
    return ToolError(f"{message}\n{body}" if body else message)


def retry_hint(retry_after: str) -> str:
    """Return the sentence for a Retry-After header."""
    return f"Retry after: {retry_after}."
