"""The tool ask_user: ask the user a question."""

from typing import Annotated

from tooling.contract.context import ExecCtx
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import schema_of
from tooling.contract.question import Question
from tooling.contract.result import ToolError, ToolResult
from tooling.contract.tool import Tool, ToolSpec

NO_USER = (
    "There is no user to answer questions in this run. Continue with the most sensible assumption and state it in your "
    "answer; do not ask again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskUserParams:
    """Arguments of ask_user."""

    question: str
    options: Annotated[tuple[str, ...], "2-4 suggested answers"] = ()


class AskUser(Tool[AskUserParams]):
    """Asks the user, who may choose an option or answer freely."""

    params = AskUserParams
    spec = ToolSpec(
        name="ask_user",
        description="Ask the user, only when you cannot continue without an answer.",
        parameters=schema_of(AskUserParams),
        effect="ask",
        timeout_ms=0,
    )

    async def run(self, params: AskUserParams, ctx: ExecCtx) -> ToolResult:
        """Wait for the answer; without a user, tell the model to continue on an assumption."""
        if not params.question.strip():
            raise ToolError("The question is empty.")
        answer = await self._services.asker.ask(Question(text=params.question, options=params.options), ctx)
        if answer is None:
            raise ToolError(NO_USER)
        verb = "selected" if answer in params.options else "answered"
        return ToolResult(f"User {verb}: {answer}")
