"""One call of fetch_page: from a wish to the result that model and person read."""

from dataclasses import replace

from tooling.contract.action import Action
from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import REFUSED, TIMED_OUT, CallStatus, ToolError, ToolMeta, ToolResult
from tooling.contract.tool import ToolServices
from tooling.finish import reserve_output
from tooling.web.addresses.url_check import Target, with_scheme
from tooling.web.fetch import Fetcher, FetchWay, PageFailed, PageRequest
from tooling.web.http.messages import Gate, WebFault
from tooling.web.page import Page, Part, excerpt, part_about, part_from, status_words

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
class Wish:
    """What a call asks for."""

    tool: str
    url: str
    query: str = ""
    offset: int = 0
    way: FetchWay = "auto"
    use_cache: bool = True


async def visit(wish: Wish, services: ToolServices, ctx: ExecCtx) -> ToolResult:
    """Fetch a page and return the part of it that was asked for; a failure is one sentence and what to try."""
    fetcher = await services.web.fetcher()
    request = PageRequest(
        url=with_scheme(wish.url), way=wish.way, use_cache=wish.use_cache, is_continued=wish.offset > 0
    )
    try:
        page = await fetcher.page(request, _gate(wish, services, ctx))
    except WebFault as fault:
        raise _failure(wish, fault) from fault
    except PageFailed as failed:
        raise _refusal(failed) from failed
    if page.reading.problem:
        raise ToolError(f"{page.url} could not be read: {page.reading.problem}.")
    return await _result(page, wish, fetcher, services.web.settings.max_chars, ctx)


def _gate(wish: Wish, services: ToolServices, ctx: ExecCtx) -> Gate:
    """Return who is asked when a page leads to another host: whoever allowed the first one."""

    async def ask(target: Target) -> str | None:
        action = Action(tool=wish.tool, effect="web", subject=target.url, cwd=ctx.working_dir, url=target.url)
        # Each question of a call has a name of its own.
        return await services.permits.refusal(action, replace(ctx, call_id=f"{ctx.call_id}-{target.host}"))

    return ask


async def _result(page: Page, wish: Wish, fetcher: Fetcher, most_chars: int, ctx: ExecCtx) -> ToolResult:
    offset = max(wish.offset, 0)
    if offset and offset >= len(page.text):
        raise ToolError(f"{page.url} has {len(page.text)} characters; offset {offset} is beyond its end.")
    query = "" if offset else wish.query.strip()
    passages = await fetcher.passages(page, query) if query else []

    def part(kept_at: str | None) -> Part:
        if query:
            return part_about(page, query, passages, kept_at=kept_at)
        return part_from(page, offset, most_chars=most_chars, kept_at=kept_at)

    # What is surely too long gets its place before it is cut: cutting it twice would take as long as masking it.
    place = reserve_output(ctx) if query or offset or len(page.text) > most_chars else None
    found = part(str(place) if place else None)
    if not found.is_whole and place is None and (place := reserve_output(ctx)):
        found = part(str(place))
    meta = ToolMeta(output_path=str(place), whole_text=page.text) if place else ToolMeta()
    size = f"{len(page.text)} characters"
    shown = f"Fetched {page.url} ({size}{', from the cache' if page.is_from_cache else ''})"
    return ToolResult(found.content, display=shown, meta=meta)


def _failure(wish: Wish, fault: WebFault) -> ToolError:
    if fault.kind == "denied":
        return ToolError(f"{wish.url} leads to another host. {fault}", status="denied", exit_code=REFUSED)
    status: CallStatus = "timeout" if fault.kind == "timeout" else "error"
    hint = _HINTS.get(fault.kind, "")
    words = f"{wish.url} could not be fetched: {fault}. {hint}".strip()
    return ToolError(words, status=status, exit_code=TIMED_OUT if fault.kind == "timeout" else 1)


def _refusal(failed: PageFailed) -> ToolError:
    hint = _STATUS_HINTS.get(failed.status, "")
    later = f" It asks to wait: {failed.retry_after}." if failed.retry_after else ""
    said = excerpt(failed.page)
    words = f"{failed.page.url} answered {status_words(failed.status)}. {hint}{later}".strip()
    return ToolError(f"{words}\n{said}" if said else words)
