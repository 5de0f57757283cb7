"""One call of fetch_page: from a wish to the result that model and person read."""

from dataclasses import replace

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import REFUSED, TIMED_OUT, CallStatus, ToolError, ToolMeta, ToolResult
from tooling.contract.tool import ToolServices
from tooling.finish import reserve_output
from tooling.web.addresses.url_check import Target, with_scheme
from tooling.web.fetch import Fetcher, FetchMode, PageRequest, PageStatusError
from tooling.web.http.messages import RedirectGate, WebFault
from tooling.web.page import Page, PagePart, excerpt, format_status, render_from_offset, render_passages

_HINTS = {
    "refused": "Only public addresses can be fetched.",
    "unknown_host": "Check the spelling of the host.",
    "redirects": "Fetch the address it leads to, if that is what you want.",
}
_STATUS_HINTS = {
    401: "It needs a login, which this tool has not.",
    403: "The server does not let us in.",
    404: "Look for the right address, for example with search_web.",
    429: "Too many requests; try later.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchCall:
    """What a call asks for."""

    tool: str
    url: str
    query: str = ""
    offset: int = 0
    mode: FetchMode = "auto"
    use_cache: bool = True


async def fetch_page(wish: FetchCall, services: ToolServices, ctx: ExecCtx) -> ToolResult:
    """Fetch a page and return the part of it that was asked for; a failure is one sentence and what to try."""
    fetcher = await services.web.fetcher()
    request = PageRequest(
        url=with_scheme(wish.url), mode=wish.mode, use_cache=wish.use_cache, is_continued=wish.offset > 0
    )
    try:
        page = await fetcher.fetch(request, _gate(wish, services, ctx))
    except WebFault as fault:
        raise _fault_error(wish, fault) from fault
    except PageStatusError as failed:
        raise _status_error(failed) from failed
    if page.document.problem:
        raise ToolError(f"{page.url} could not be read: {page.document.problem}.")
    return await _build_result(page, wish, fetcher, services.web.settings.max_chars, ctx)


def _gate(wish: FetchCall, services: ToolServices, ctx: ExecCtx) -> RedirectGate:
    """Return who is asked when a page leads to another host: whoever allowed the first one."""

    async def ask(target: Target) -> str | None:
        action = Action(tool=wish.tool, effect="web", subject=target.url, cwd=ctx.working_dir, url=target.url)
        # Each question of a call has a name of its own.
        return await services.action_gate.refusal(action, replace(ctx, call_id=f"{ctx.call_id}-{target.host}"))

    return ask


async def _build_result(page: Page, wish: FetchCall, fetcher: Fetcher, most_chars: int, ctx: ExecCtx) -> ToolResult:
    offset = max(wish.offset, 0)
    if offset and offset >= len(page.text):
        raise ToolError(f"{page.url} has {len(page.text)} characters; offset {offset} is beyond its end.")
    query = "" if offset else wish.query.strip()
    passages = await fetcher.passages(page, query) if query else []

    def part(kept_at: str | None) -> PagePart:
        if query:
            return render_passages(page, query, passages, kept_at=kept_at)
        return render_from_offset(page, offset, most_chars=most_chars, kept_at=kept_at)

    # What is surely too long gets its place before it is cut: cutting it twice would take as long as masking it.
    place = reserve_output(ctx) if query or offset or len(page.text) > most_chars else None
    found = part(str(place) if place else None)
    if not found.is_complete and place is None and (place := reserve_output(ctx)):
        found = part(str(place))
    meta = ToolMeta(output_path=str(place), full_text=page.text) if place else ToolMeta()
    size = f"{len(page.text)} characters"
    shown = f"Fetched {page.url} ({size}{', from the cache' if page.is_from_cache else ''})"
    return ToolResult(found.content, display=shown, meta=meta)


def _fault_error(wish: FetchCall, fault: WebFault) -> ToolError:
    if fault.kind == "denied":
        return ToolError(f"{wish.url} leads to another host. {fault}", status="denied", exit_code=REFUSED)
    status: CallStatus = "timeout" if fault.kind == "timeout" else "error"
    hint = _HINTS.get(fault.kind, "")
    words = f"{wish.url} could not be fetched: {fault}. {hint}".strip()
    return ToolError(words, status=status, exit_code=TIMED_OUT if fault.kind == "timeout" else 1)


def _status_error(failed: PageStatusError) -> ToolError:
    hint = _STATUS_HINTS.get(failed.status, "")
    later = f" It asks to wait: {failed.retry_after}." if failed.retry_after else ""
    said = excerpt(failed.page)
    words = f"{failed.page.url} answered {format_status(failed.status)}. {hint}{later}".strip()
    return ToolError(f"{words}\n{said}" if said else words)
