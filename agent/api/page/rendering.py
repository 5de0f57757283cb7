"""Renders the templates. Text from models, commands and users is escaped, and nothing in it is hidden."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from agent.api.page.plan_graph import draw_plan
from agent.api.page.wording import Wording, usd, visible
from agent.sessions.views.run_summary import CallView, StepView
from agent.vocabulary.status import is_success
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import encode

_TEMPLATES = Path(__file__).parent / "templates"
_MAX_MARKDOWN_CHARS = 20_000
_MAX_DIFF_LINES = 400
_TONES = {
    "good": ("ok", "completed", "success", "active"),
    "bad": ("error", "failed", "timeout", "blocked", "interrupted"),
    "warn": ("waiting", "partial", "needs_input", "canceling", "paused"),
    "busy": ("running", "claimed"),
}
_CALL_TONES = {"ok": "good", "unfinished": "busy", "denied": "warn", "deferred": "warn", "cancelled": "warn"}
# The main argument of a tool comes first; users recognize a call by it.
_SUBJECTS = ("command", "path", "url", "query", "pattern", "question", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """One line of a diff."""

    kind: str
    text: str


class Renderer:
    """The templates of the package, with their filters."""

    def __init__(self, translate: Callable[[str], str] = str) -> None:
        self._wording = wording = Wording(translate)
        # Raw HTML stays text, and nothing is loaded from other hosts.
        self._markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
        self._environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        filters = (
            visible, clip, tone, call_tone, step_status, utc_words, usd, call_line, call_input, done_count,
            wording.message, wording.status_word, wording.duration, wording.cost, wording.tokens, wording.excerpt,
            self.markdown, self.diff_rows, capital, with_code,
        )  # fmt: skip
        self._environment.filters |= {function.__name__: function for function in filters}
        self._environment.filters |= {"utc": encode, "plan_graph": draw_plan}
        self._environment.globals["t"] = wording.t

    def page(self, name: str, csrf: str, *, code: int = 200, **values: object) -> HTMLResponse:
        """Return a page; `csrf` is the token for its forms, empty if the user is not logged in."""
        field = Markup('<input type="hidden" name="csrf" value="{}">').format(csrf)
        defaults: dict[str, object] = {"here": "", "live": False, "events": "", "workers": 1}
        template = self._environment.get_template(name)
        text = template.render(defaults | values, csrf=csrf, csrf_field=lambda: field)
        return HTMLResponse(text.encode("utf-8", "replace"), code)

    def markdown(self, text: str) -> Markup:
        """Return Markdown as HTML; links send no referrer."""
        html: str = self._markdown.render(visible(text[:_MAX_MARKDOWN_CHARS]))
        return Markup(html.replace("<a href=", '<a rel="noopener noreferrer nofollow" href='))

    def diff_rows(self, diff: str) -> list[DiffRow]:
        """Return the lines of a diff with their kinds."""
        lines = diff.removesuffix("\n").split("\n")
        shown = [DiffRow(kind=_diff_kind(line), text=visible(line)) for line in lines[:_MAX_DIFF_LINES]]
        left = len(lines) - len(shown)
        return [*shown, DiffRow(kind="hunk", text=self._wording.t("… {left} more lines", left=left))] if left else shown


def clip(text: str, chars: int) -> str:
    """Return text as one line of at most `chars` characters."""
    line = " ".join(text.split())
    return line if len(line) <= chars else f"{line[: chars - 1]}…"


def capital(text: str) -> str:
    """Return a sentence of the terminal as one of a page."""
    return f"{text[:1].upper()}{text[1:]}"


def with_code(text: str) -> Markup:
    """Return a text with what is in backticks as code."""
    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part for number, part in enumerate(parts)
    )


def tone(status: str) -> str:
    """Return the color of a status."""
    if status.startswith("error_"):
        return "bad"
    return next((name for name, statuses in _TONES.items() if status in statuses), "idle")


def call_tone(status: str) -> str:
    """Return the color of a call's status."""
    return _CALL_TONES.get(status, "bad")


def step_status(status: str, running: object) -> str:
    """Return the status of a step: one without an end is running, or was interrupted."""
    return ("running" if running else "interrupted") if status == "unfinished" else status


def utc_words(text: str) -> str:
    """Return a UTC time; with JavaScript the page shows it in the user's time zone."""
    try:
        return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return text


def call_line(call: CallView) -> str:
    """Return a call in one line: a command unchanged, another tool with its main argument."""
    subject = next((str(call.input[name]) for name in _SUBJECTS if name in call.input), "")
    line = subject if call.name == "run_command" else f"{call.name} {subject}"
    return clip(visible(line), 160)


def call_input(call: CallView) -> str:
    """Return the complete input of a call."""
    if set(call.input) == {"command"}:
        return visible(str(call.input["command"]))
    return visible(json.dumps(dict(call.input), ensure_ascii=False, indent=2))


def done_count(steps: Sequence[StepView]) -> int:
    """Return the number of steps that succeeded."""
    return sum(is_success(step.status) for step in steps)


def _diff_kind(line: str) -> str:
    if line.startswith(("+++ ", "--- ", "@@")):
        return "hunk"
    return {"+": "added", "-": "removed"}.get(line[:1], "same")
