"""Composes the final answer from the results of the steps."""

import asyncio
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from agent.model.budget import BudgetExhausted
from agent.model.faults import INCOMPLETE, ModelFault
from agent.model.metered_client import MeteredModel, stream_whole
from agent.model.port import ModelReply, ModelRequest, ReasoningDelta, StreamRestarted, TextDelta
from agent.prompts.load import load_prompt
from agent.protocol.channel import Channel
from agent.protocol.events import MessageAdded
from agent.vocabulary.message import Message
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.status import is_success
from agent.vocabulary.step import ExecutorResponse
from agent.workspace.request_context import wrap_in_tag
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.finish import output_stem

# Brackets in code are not citations.
_CODE = lazy_pattern(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)
_CITATION = lazy_pattern(r"[ \t]?\[(?P<ids>[\w.-]+(?:\s*[,;]\s*[\w.-]+)*)\](?![(:])")


def remove_unknown_citations(answer: str, ids: Collection[str]) -> str:
    """Return the answer without citations of unknown steps; other brackets are unchanged."""
    kinds = {_id_shape(step_id) for step_id in ids}

    def keep_known(match: re.Match[str]) -> str:
        ids_cited = re.split(r"\s*[,;]\s*", match["ids"])
        known = [name for name in ids_cited if name in ids]
        if len(known) == len(ids_cited) or not all(name in ids or _id_shape(name) in kinds for name in ids_cited):
            return match[0]
        lead = match[0][: match[0].index("[")]
        return f"{lead}[{', '.join(known)}]" if known else ""

    parts = _CODE.split(answer)
    parts[::2] = [_CITATION.sub(keep_known, part) for part in parts[::2]]
    return "".join(parts)


def _id_shape(step_id: str) -> str:
    """Return an id with its numbers replaced: an unknown id of a known shape is a citation, a footnote is not."""
    return re.sub(r"\d+", "0", step_id)


RESULTS_CHARS = 40_000
EMPTY_ANSWER = "(empty response)"

_REPLACED = "done another way"
_ASSUMED = "assumed, because nobody could be asked"


class Composer:
    """Composes one answer from many results; if the model fails, the results are joined instead."""

    def __init__(self, *, client: MeteredModel, channel: Channel, model: str, max_output_tokens: int) -> None:
        self._client = client
        self._channel = channel
        self._model = model
        self._max_output_tokens = max_output_tokens

    async def compose(
        self,
        request: str,
        results: Sequence[tuple[PlanStep, ExecutorResponse]],
        constraints: str,
        *,
        replaced: Collection[str] = (),
    ) -> tuple[str, ModelFault | BudgetExhausted | None]:
        """Return the answer and, if the model failed, the reason; a truncated reply is still the answer.

        The `replaced` steps failed and their work was redone.
        """
        content = f"Request: {request}\n\n{format_results(results, RESULTS_CHARS, replaced=replaced)}"
        # A structured answer cannot contain citations.
        instructions = constraints or load_prompt("citations", example=results[0][0].id)
        model_request = ModelRequest(
            model=self._model,
            messages=(
                Message(role="system", content=f"{load_prompt('composer')}\n\n{instructions}"),
                Message(role="user", content=content),
            ),
            purpose="composer",
            max_output_tokens=self._max_output_tokens,
        )
        answer, problem = await self._stream_answer(model_request)
        if not constraints:
            answer = remove_unknown_citations(answer, [step.id for step, _ in results])
        return answer or join_results(results, replaced), problem

    async def _stream_answer(self, request: ModelRequest) -> tuple[str, ModelFault | BudgetExhausted | None]:
        """Return the answer, emitted while it arrives, and the reason if it is missing or incomplete."""
        said = ""
        try:
            async with aclosing(stream_whole(self._client, request)) as items:
                async for item in items:
                    match item:
                        case TextDelta(text=text):
                            said += text
                            self._channel.emit(MessageAdded(role="assistant", content=text, delta=True))
                        case ReasoningDelta(text=text):
                            self._channel.emit(MessageAdded(role="thought", content=text, delta=True))
                        case StreamRestarted():
                            said = ""
                        case ModelReply():
                            said = item.message.content
        except ModelFault as fault:
            return said.strip() if fault.kind in INCOMPLETE else "", fault
        except BudgetExhausted as problem:
            return "", problem
        return said.strip(), None


def join_results(results: Sequence[tuple[PlanStep, ExecutorResponse]], replaced: Collection[str] = ()) -> str:
    """Return an answer without a model: the text of each step, and a line for each that failed."""
    parts = [_step_text(step, response, is_replaced=step.id in replaced) for step, response in results]
    return "\n\n".join(part for part in parts if part) or EMPTY_ANSWER


def _step_text(step: PlanStep, response: ExecutorResponse, *, is_replaced: bool) -> str:
    if is_success(response.status):
        return response.text or response.summary
    mark = f" ({_status_label(response, is_replaced=is_replaced)})" if is_replaced else ""
    return f"{step.title}: {response.summary}{mark}"


def _status_label(response: ExecutorResponse, *, is_replaced: bool) -> str:
    if not is_replaced:
        return response.status
    return _ASSUMED if response.status == "needs_input" else f"{response.status}, {_REPLACED}"


def list_outputs(results: Sequence[tuple[PlanStep, ExecutorResponse]]) -> str:
    """Return the answer for a plan without a model: each step's output under its title, a single one without."""
    outputs = [(response.text or response.summary).strip("\n") for _, response in results]
    if len(outputs) == 1:
        return outputs[0]
    parts = [f"## {step.title}\n\n{output}" for (step, _), output in zip(results, outputs, strict=True)]
    return "\n\n".join(parts) or EMPTY_ANSWER


def format_results(
    results: Sequence[tuple[PlanStep, ExecutorResponse]],
    limit: int,
    *,
    replaced: Collection[str] = (),
    full_text_paths: Mapping[str, str] | None = None,
) -> str:
    """Return results as tagged data, each truncated to an equal share of `limit` with a reference to its full text."""
    share, known = chars_per_result(limit, len(results)), full_text_paths or {}
    return "\n".join(
        wrap_in_tag(
            "result",
            _truncate(response.text or response.summary, share, known.get(step.id, "")),
            step=step.id,
            title=step.title.replace('"', "'"),
            status=_status_label(response, is_replaced=step.id in replaced),
        )
        for step, response in results
    )


def chars_per_result(limit: int, count: int) -> int:
    """Return how many characters of each result fit."""
    return max(500, limit // max(1, count))


def _truncate(text: str, limit: int, full_text_path: str = "") -> str:
    if len(text) <= limit:
        return text
    reference = f"; the whole is in {full_text_path}" if full_text_path else ""
    return f"{text[: limit * 2 // 3]}\n[… {len(text) - limit} characters left out{reference}]\n{text[-(limit // 3) :]}"


EXCERPTS_CHARS = 6000


async def dependency_excerpts(
    results: Sequence[tuple[PlanStep, ExecutorResponse]],
    outputs: Path | None,
    mask: Callable[[str], str] = lambda text: text,
    *,
    limit: int = EXCERPTS_CHARS,
) -> str:
    """Return the results as tagged data; the full text of a truncated one is saved in `outputs`, secrets masked."""
    share = chars_per_result(limit, len(results))
    full_text_paths: dict[str, str] = {}
    for step, response in results:
        if len(response.text) > share and outputs is not None:
            path = outputs / f"{output_stem(step.id, response.attempts)}-answer.txt"
            if await asyncio.to_thread(_try_write, path, mask(response.text)):
                full_text_paths[step.id] = str(path)
    return format_results(results, limit, full_text_paths=full_text_paths)


def _try_write(path: Path, text: str) -> bool:
    """Write a file readable by its owner only; on failure the excerpt has to suffice."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError:
        return False
    return True
