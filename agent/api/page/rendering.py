"""Renders the templates. Everything that comes from models, commands and users is data: escaped, and nothing hidden."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup

from agent.api.page.plan_graph import draw_plan
from agent.sessions.views.run_summary import CallView, StepView
from agent.vocabulary.status import is_success
from agent.vocabulary.usage import Usage
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import encode
from tooling.safety.hidden_characters import escape_hidden

_TEMPLATES = Path(__file__).parent / "templates"
_MAX_OUTPUT_CHARS = 20_000
_MAX_DIFF_LINES = 400
_TONES = {
    "good": ("ok", "completed", "success", "active"),
    "bad": ("error", "failed", "timeout", "blocked", "interrupted"),
    "warn": ("waiting", "partial", "needs_input", "canceling", "paused"),
    "busy": ("running", "claimed"),
}
_CALL_TONES = {"ok": "good", "unfinished": "busy", "denied": "warn", "deferred": "warn", "cancelled": "warn"}
_WORDS = {"needs_input": "needs input", "unfinished": "interrupted", "waiting": "needs you", "ok": "done"}
# The main argument of a tool comes first; it is what the user recognizes a call by.
_SUBJECTS = ("command", "path", "url", "query", "pattern", "question", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """One line of a diff."""

    kind: str
    text: str


class Renderer:
    """The templates of the package, with their filters."""

    def __init__(self) -> None:
        # Raw HTML stays text, and nothing is loaded from elsewhere.
        self._markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
        self._environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        filters = (
            visible, clip, excerpt, tone, call_tone, status_word, step_status, utc_words, duration, usd, cost, tokens,
            call_line, call_input, diff_rows, done_count,
        )  # fmt: skip
        self._environment.filters |= {function.__name__: function for function in filters}
        self._environment.filters |= {"markdown": self.markdown, "utc": encode, "plan_graph": draw_plan}

    def page(self, name: str, csrf: str, *, code: int = 200, **values: object) -> HTMLResponse:
        """Return a page; `csrf` is what its forms carry, empty for somebody who is not logged in."""
        field = Markup('<input type="hidden" name="csrf" value="{}">').format(csrf)
        defaults: dict[str, object] = {"here": "", "live": False, "events": "", "prompt": ""}
        template = self._environment.get_template(name)
        text = template.render(defaults | values, csrf=csrf, csrf_field=lambda: field)
        return HTMLResponse(text.encode("utf-8", "replace"), code)

    def markdown(self, text: str) -> Markup:
        """Return Markdown as HTML; links open without telling where they were followed from."""
        html: str = self._markdown.render(visible(text[:_MAX_OUTPUT_CHARS]))
        return Markup(html.replace("<a href=", '<a rel="noopener noreferrer nofollow" href='))


def visible(text: str) -> str:
    """Escape what could hide or reorder text, in every line."""
    return "\n".join(map(escape_hidden, text.expandtabs(4).split("\n")))


def clip(text: str, chars: int) -> str:
    """Return text as one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{line[: chars - 1]}…"


def excerpt(text: str) -> str:
    """Return the beginning and the end of a long output."""
    if len(text) > _MAX_OUTPUT_CHARS:
        half = _MAX_OUTPUT_CHARS // 2
        text = f"{text[:half]}\n[… {len(text) - 2 * half:,} characters; `agent runs why` shows all …]\n{text[-half:]}"
    return visible(text)


def tone(status: str) -> str:
    """Return the color of a status."""
    if status.startswith("error_"):
        return "bad"
    return next((name for name, statuses in _TONES.items() if status in statuses), "idle")


def call_tone(status: str) -> str:
    """Return the color of a call's status."""
    return {"ok": "good", "unfinished": "busy", "denied": "warn", "deferred": "warn", "cancelled": "warn"}.get(
        status, "bad"
    )


def status_word(status: str) -> str:
    """Return a status in words."""
    return _WORDS.get(status, status.replace("error_", "failed: ").replace("_", " "))


def step_status(status: str, running: object) -> str:
    """Return the status of a step: one without an end is running, or its run was interrupted."""
    return ("running" if running else "interrupted") if status == "unfinished" else status


def utc_words(text: str) -> str:
    """Return a time for those without JavaScript, which shows it in the user's time zone."""
    try:
        return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return text


def duration(milliseconds: int) -> str:
    """Return a duration in words."""
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def usd(amount: float) -> str:
    """Return an amount of money."""
    return f"${amount:.2f}" if amount >= 0.1 else f"${amount:.4f}"


def cost(usage: Usage | None) -> str:
    """Return what a run has cost so far."""
    if usage is None:
        return "–"
    return "unknown" if usage.cost_usd is None else usd(usage.cost_usd)


def tokens(usage: Usage | None) -> str:
    """Return the tokens of a run so far."""
    if usage is None:
        return "–"
    cached = f", {usage.cache_read_tokens:,} cached" if usage.cache_read_tokens else ""
    return f"{usage.input_tokens:,} in{cached}, {usage.output_tokens:,} out"


def call_line(call: CallView) -> str:
    """Return a call in one line: a command as it is, another tool with its main argument."""
    subject = next((str(call.input[name]) for name in _SUBJECTS if name in call.input), "")
    line = subject if call.name == "run_command" else f"{call.name} {subject}"
    return clip(visible(line), 160)


def call_input(call: CallView) -> str:
    """Return the complete input of a call."""
    if set(call.input) == {"command"}:
        return visible(str(call.input["command"]))
    return visible(json.dumps(dict(call.input), ensure_ascii=False, indent=2))


def diff_rows(diff: str) -> list[DiffRow]:
    """Return the lines of a diff with what they are."""
    lines = diff.removesuffix("\n").split("\n")
    shown = [DiffRow(kind=_diff_kind(line), text=visible(line)) for line in lines[:_MAX_DIFF_LINES]]
    left = len(lines) - len(shown)
    return [*shown, DiffRow(kind="hunk", text=f"… {left} more lines")] if left else shown


def done_count(steps: Sequence[StepView]) -> int:
    """Return how many steps have succeeded."""
    return sum(is_success(step.status) for step in steps)


def _diff_kind(line: str) -> str:
    if line.startswith(("+++ ", "--- ", "@@")):
        return "hunk"
    return {"+": "added", "-": "removed"}.get(line[:1], "same")
