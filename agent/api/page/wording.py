"""The texts of the pages in the user's language. The English text, with named placeholders in braces, is the key."""

from collections.abc import Callable

from markupsafe import Markup, escape

from agent.vocabulary.usage import Usage
from tooling.safety.hidden_characters import escape_hidden

_MAX_OUTPUT_CHARS = 20_000
_SHORT_MS = 100


class Wording:
    """The texts of the pages. The catalogue lists every text passed to `t`."""

    def __init__(self, translate: Callable[[str], str]) -> None:
        self._translate = translate
        self._words = self._status_words()

    def t(self, text: str, **values: object) -> Markup:
        """Return a text of the page; translations and values are escaped, except values that are Markup."""
        translated = escape(self._translate(text))
        try:
            return translated.format(**values) if values else translated
        except (LookupError, ValueError, AttributeError):
            # The user's own translation has other placeholders.
            return escape(text).format(**values)

    def message(self, text: str) -> str:
        """Return an error or a warning as the terminal would show it."""
        return visible(self._translate(text))

    def status_word(self, status: str) -> Markup:
        """Return a status, a mode or the kind of a change in words."""
        return self._words.get(status) or escape(visible(status.replace("_", " ")))

    def duration(self, milliseconds: int) -> Markup:
        """Return a duration in words."""
        if milliseconds < _SHORT_MS:
            return self.t("< {seconds} s", seconds="0.1")
        seconds = milliseconds / 1000
        if seconds < 60:
            return self.t("{seconds} s", seconds=f"{seconds:.1f}")
        minutes, rest = divmod(round(seconds), 60)
        if minutes < 60:
            return self.t("{minutes} min {seconds} s", minutes=minutes, seconds=rest)
        return self.t("{hours} h {minutes} min", hours=minutes // 60, minutes=minutes % 60)

    def cost(self, usage: Usage | None) -> str:
        """Return the cost of a run so far."""
        if usage is None:
            return "–"
        return self.t("unknown") if usage.cost_usd is None else usd(usage.cost_usd)

    def tokens(self, usage: Usage | None) -> str:
        """Return the tokens of a run so far."""
        if usage is None:
            return "–"
        read, cached, written = (
            f"{count:,}" for count in (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens)
        )
        if usage.cache_read_tokens:
            return self.t("{read} in, {cached} cached, {written} out", read=read, cached=cached, written=written)
        return self.t("{read} in, {written} out", read=read, written=written)

    def excerpt(self, text: str) -> Markup:
        """Return the beginning and the end of a long output."""
        if len(text) <= _MAX_OUTPUT_CHARS:
            return escape(visible(text))
        half = _MAX_OUTPUT_CHARS // 2
        left_out = self.t("[… {count} characters; `agent runs why` shows all …]", count=f"{len(text) - 2 * half:,}")
        return Markup("\n").join((visible(text[:half]), left_out, visible(text[-half:])))

    def _status_words(self) -> dict[str, Markup]:
        t = self.t
        return {
            "ok": t("done"),
            "success": t("success"),
            "completed": t("completed"),
            "partial": t("partial"),
            "needs_input": t("needs input"),
            "waiting": t("needs you"),
            "error": t("error"),
            "failed": t("failed"),
            "timeout": t("timeout"),
            "blocked": t("blocked"),
            "denied": t("denied"),
            "deferred": t("deferred"),
            "skipped": t("skipped"),
            "cancelled": t("canceled"),
            "canceled": t("canceled"),
            "canceling": t("canceling"),
            "pending": t("pending"),
            "queued": t("queued"),
            "claimed": t("claimed"),
            "running": t("running"),
            "unfinished": t("interrupted"),
            "interrupted": t("interrupted"),
            "unreadable": t("unreadable"),
            "empty": t("empty"),
            "active": t("active"),
            "paused": t("paused"),
            "hit": t("already done"),
            "resumed": t("resumed"),
            "immediate": t("immediate"),
            "scheduled": t("scheduled"),
            "nightly": t("nightly"),
            "added": t("added"),
            "modified": t("modified"),
            "deleted": t("deleted"),
            **self._failures(),
        }

    def _failures(self) -> dict[str, Markup]:
        t = self.t
        return {
            "error_task": t("failed: task"),
            "error_auth": t("failed: auth"),
            "error_input": t("failed: input"),
            "error_sandbox": t("failed: sandbox"),
            "error_config": t("failed: config"),
            "error_limit": t("failed: limit"),
            "error_tool": t("failed: tool"),
            "error_untrusted": t("failed: untrusted"),
            "error_budget": t("failed: budget"),
            "error_approval": t("failed: approval"),
            "error_unverified": t("failed: unverified"),
            "error_provider": t("failed: provider"),
            "error_busy": t("failed: busy"),
            "error_timeout": t("failed: timeout"),
            "error_interrupted": t("failed: interrupted"),
        }


def visible(text: str) -> str:
    """Escape characters that could hide or reorder text, in every line."""
    return "\n".join(map(escape_hidden, text.expandtabs(4).split("\n")))


def usd(amount: float) -> str:
    """Return an amount of money."""
    return f"${amount:.2f}" if amount >= 0.1 else f"${amount:.4f}"
