"""Shared parts of pages: safe output, wrapping, and formatting of times and sizes."""

import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from agent.config.user_dirs import os_environ
from cli.screen.sanitize import sanitize, to_safe_json
from tooling.contract.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from cli.screen.colors import Paint, Tone

_GENERATED_ID = lazy_pattern(r"(?:(?:run|undo)-\d{14}|\d{8}-\d{6})-([0-9a-f]{6})")
_MIN_WIDTH = 40
_AGES = ((60, "m"), (24, "h"), (7, "d"), (52, "w"))
# A page starts with a title and its fields; labels with a text, or with indented lines below, follow.
_TITLE = ""
_LABEL = lazy_pattern(
    r"(?P<label>request|plan|plan \d+, .*|warning|error|denied|changed|answer|task|ran|checked|called|ended|check)"
    r":(?P<rest>.*)"
)
_FIELD = lazy_pattern(r"(?P<name>  (?:[a-z]+(?: [a-z]+)*:|[a-z]+(?=  )|(?:session|verified)(?= )))(?P<rest>.*)")
_STEP = lazy_pattern(r"(?P<name>  \S+ +)(?P<status>[a-z_]+)(?P<rest>.*)")
_STATUS = lazy_pattern(
    r"(?:ok|success|partial|error|timeout|blocked|skipped|cancelled|needs_input|running|unfinished|interrupted"
    r"|unreadable|empty)(?![a-z])"
)
_STATUS_WORDS = {
    "error_task": "failed",
    "error_auth": "no key",
    "error_input": "bad input",
    "error_sandbox": "no sandbox",
    "error_config": "bad settings",
    "error_limit": "limit reached",
    "error_tool": "tools failed",
    "error_untrusted": "not trusted",
    "error_budget": "out of budget",
    "error_approval": "not allowed",
    "error_unverified": "not verified",
    "error_provider": "provider failed",
    "error_busy": "busy",
    "error_timeout": "timed out",
    "error_interrupted": "stopped",
}
_PROBLEM_TONES: "dict[str, Tone]" = {"error": "bad", "denied": "bad", "warning": "warn"}
_DIFF_TONES: "dict[str, Tone]" = {"+": "good", "-": "bad", "@": "quiet"}
NO_CONFIRMATION = "cannot ask for confirmation without a terminal"


def print_lines(lines: Iterable[str]) -> None:
    print_text("".join(f"{line}\n" for line in lines))


def print_text(text: str) -> None:
    """Write text to stdout, sanitized on a terminal and unchanged in a pipe."""
    print_styled(sanitize(text) if sys.stdout.isatty() else text)


def print_styled(text: str) -> None:
    """Write text with escape sequences to stdout; the caller has sanitized foreign text. A closed pipe exits with 0."""
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError as error:
        raise typer.Exit(0) from error


def print_table(lines: Iterable[str]) -> None:
    """Write the lines of a table, which are sanitized, with their colors."""
    print_styled("".join(f"{line}\n" for line in lines))


def print_page(lines: Iterable[str], *, is_wrapped: bool = True) -> None:
    """Write the lines of a page to stdout; on a terminal word-wrapped and colored."""
    text = "".join(f"{line}\n" for line in lines)
    if not sys.stdout.isatty():
        print_text(text)
        return
    shown = wrap_text(sanitize(text)) if is_wrapped else sanitize(text).rstrip("\n")
    print_table(color_page(shown.splitlines(), stdout_colors()))


def color_page(lines: Iterable[str], paint: "Paint") -> Iterator[str]:
    """Color the lines of a page: its titles, fields, labels, statuses of steps, problems and diffs."""
    label = _TITLE
    for line in lines:
        if match := _LABEL.match(line):
            label = match["label"]
            yield _color_labeled(label, match["rest"], paint)
        elif label == _TITLE:
            yield _color_head(line, paint)
        elif label == "plan" and (match := _STEP.match(line)):
            status = paint(status_tone(match["status"]), match["status"])
            yield paint("accent", match["name"]) + status + match["rest"]
        elif label == "plan":
            yield paint("quiet", line)
        elif label == "changed" and line[2:3] in _DIFF_TONES:
            yield paint(_DIFF_TONES[line[2]], line)
        else:
            yield line


def _color_head(line: str, paint: "Paint") -> str:
    """Color a title, whose parts are two spaces apart, or a field below it."""
    if match := _FIELD.match(line):
        return paint("quiet", match["name"]) + match["rest"]
    if line.startswith("  "):
        return f"  {_color_status(line[2:], paint)}"
    name, *parts = line.split("  ")
    if name[:1].isalnum() and not _STATUS.match(name):
        return "  ".join((paint("accent", name), *(_color_status(part, paint) for part in parts)))
    return _color_status(line, paint)


def _color_status(text: str, paint: "Paint") -> str:
    return paint(status_tone(text), text) if _STATUS.match(text) else text


def _color_labeled(label: str, rest: str, paint: "Paint") -> str:
    if tone := _PROBLEM_TONES.get(label):
        return paint(tone, f"{label}:{rest}")
    if label == "ended":
        return paint("quiet", f"{label}:") + paint(status_tone(rest.strip()), rest)
    return paint("strong", f"{label}:") + rest


def print_json(data: object) -> None:
    print_lines([to_safe_json(data, indent=2)])


def print_notice(text: str) -> None:
    """Write a notice for the user to stderr, word-wrapped on a terminal."""
    typer.echo(wrap_text(text) if sys.stderr.isatty() else text, err=True)


def wrap_text(text: str) -> str:
    """Wrap a text to the width of the terminal."""
    from cli.screen.colors import wrap_lines

    return "\n".join(wrap_lines(text, shutil.get_terminal_size().columns))


def stdout_colors() -> "Paint":
    """Return the colors for stdout."""
    from cli.run.progress import wants_color
    from cli.screen.colors import Paint, resolve_theme

    environ = os_environ()
    return Paint(has_color=wants_color(environ, sys.stdout), theme=resolve_theme("auto", environ))


def terminal_width() -> int | None:
    """Return the width of the terminal, or None if stdout is not one."""
    return max(_MIN_WIDTH, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def short_ids(ids: Sequence[str]) -> list[str]:
    """Return the random ends of generated ids, which commands accept in place of the ids; others stay as they are."""
    ends = {full: match[1] if (match := _GENERATED_ID.fullmatch(full)) else full for full in ids}
    counts = Counter(ends.values())
    return [ends[full] if counts[ends[full]] == 1 else full for full in ids]


def status_tone(status: str) -> "Tone":
    """Return the color of the status of a run, a session or a step."""
    if status.startswith(("error", "timeout", "blocked", "unreadable")):
        return "bad"
    tones: dict[str, Tone] = {
        "success": "good",
        "ok": "good",
        "running": "accent",
        "skipped": "quiet",
        "empty": "quiet",
    }
    return tones.get(status.partition(",")[0].partition(" ")[0], "warn")


def status_word(status: str) -> str:
    """Return the status of a run or a session as a word for the terminal."""
    return _STATUS_WORDS.get(status, status)


def one_line(text: str, max_chars: int) -> str:
    """Return a text as one sanitized line, shortened to `max_chars`."""
    words = " ".join(sanitize(text).split())
    return words if len(words) <= max_chars else words[: max_chars - 1] + "…"


def indent_lines(text: str, indent: str = "  ") -> list[str]:
    """Return the sanitized lines of a text, indented."""
    return [f"{indent}{line}".rstrip() for line in sanitize(text).rstrip().splitlines()]


def format_age(timestamp: str, now: datetime | None = None) -> str:
    """Return the age of a timestamp: now, 5m, 3h, 2d, 6w, 1y."""
    try:
        then = datetime.fromisoformat(timestamp)
        amount = ((now or datetime.now(UTC)) - then).total_seconds() / 60
    except (ValueError, TypeError):
        return ""
    if amount < 1:
        return "now"
    for limit, unit in _AGES:
        if amount < limit:
            return f"{int(amount)}{unit}"
        amount /= limit
    return f"{int(amount)}y"


def format_time(timestamp: str) -> str:
    """Return a timestamp in local time, to the minute."""
    try:
        return f"{datetime.fromisoformat(timestamp).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return timestamp


def format_size(number: int) -> str:
    """Return a size in bytes for display: 950 B, 1.2 kB, 34 MB."""
    value = float(number)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"
