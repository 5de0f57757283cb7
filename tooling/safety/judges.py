"""No secret leaves in an address or a query: a page can talk a model into writing one there."""

from urllib.parse import unquote

from tooling.contract.action import Action, Decision, Judge, Verdict
from tooling.contract.context import ExecCtx
from tooling.safety.secrets.redact import Redactor

_KNOWN_SECRET_REASON = "it holds a key that this agent knows, and keys are sent to nobody"
_LIKELY_SECRET_REASON = "the query holds what looks like a key, and whoever searches for us would read it"


class SecretLeakJudge:
    """A judge that blocks what would tell a known key to the web, or anything like a key to a search provider."""

    def __init__(self, judge: Judge, redactor: Redactor) -> None:
        self._judge = judge
        self._redactor = redactor

    def judge(self, action: Action, ctx: ExecCtx) -> Verdict:
        """Return the other judge's verdict, unless a key would leave."""
        if action.effect == "web" and (reason := self._leak_reason(action)):
            return Verdict(decision=Decision.BLOCK, reasons=(reason,), rule="key-leaves")
        return self._judge.judge(action, ctx)

    def _leak_reason(self, action: Action) -> str | None:
        for text in {action.subject, unquote(action.subject), unquote(unquote(action.subject))}:
            if self._redactor.mask_known(text) != text:
                return _KNOWN_SECRET_REASON
        # An address may hold a login or a signature of its own, which belongs to its host.
        if not action.url and self._redactor.redact(action.subject) != action.subject:
            return _LIKELY_SECRET_REASON
        return None
