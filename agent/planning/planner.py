"""Asks a model for a plan and yields its steps while the reply is still arriving."""

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TypeAlias

from agent.model.faults import ModelFault
from agent.model.metered_client import MeteredModel, stream_whole
from agent.model.port import ModelReply, ModelRequest, StreamItem, StreamRestarted, TextDelta
from agent.planning.capabilities import Capabilities
from agent.planning.estimate import Estimate
from agent.planning.graph import topological_order
from agent.planning.plan_reader import PlanReader
from agent.planning.steps import StepBuilder, fallback_step, is_answer_only
from agent.prompts.load import load_prompt
from agent.vocabulary.message import Message
from agent.vocabulary.plan import Plan, PlanStep
from tooling.contract.image import Image
from tooling.contract.json_text import json_encoder

CONTEXT_CHARS = 24_000
PROGRESS_CHARS = 16_000
_to_text = json_encoder(sort_keys=True)
# The steps of a plan in the order in which they become known, then the plan itself.
PlanStream: TypeAlias = AsyncGenerator[PlanStep | Plan, None]


class Planner:
    """Plans a request with one model call, or answers it when there is nothing to do."""

    def __init__(
        self,
        *,
        client: MeteredModel,
        model: str,
        max_output_tokens: int,
        capabilities: Capabilities | None = None,
        estimate: Estimate = lambda step: None,
    ) -> None:
        self._client = client
        self._model = model
        self._max_output_tokens = max_output_tokens
        self.capabilities = capabilities or Capabilities()
        self._estimate = estimate

    async def plan(self, request: str, context: str, images: tuple[Image, ...] = ()) -> PlanStream:
        """Yield every step as soon as it is known, and the complete plan last."""
        async with aclosing(self._stream(planner_messages(request, context, images), request)) as items:
            async for item in items:
                if isinstance(item, PlanStep) or (item and (item.steps or item.answer is not None)):
                    yield item
                else:
                    step = self.with_estimate(fallback_step(request))
                    yield step
                    yield Plan(steps=(step,))

    async def replan(self, request: str, context: str, progress: str, reason: str) -> Plan | None:
        """Return all the work that remains, possibly no step at all; None if the reply contains no plan."""
        plan: Plan | None = None
        async with aclosing(self._stream(replan_messages(request, context, progress, reason), request)) as items:
            async for item in items:
                plan = None if isinstance(item, PlanStep) else item
        return plan

    def with_estimates(self, plan: Plan) -> Plan:
        """Return a plan from elsewhere with the estimated cost of its steps."""
        return replace(plan, steps=tuple(map(self.with_estimate, plan.steps)))

    def with_estimate(self, step: PlanStep) -> PlanStep:
        """Return a step with its estimated cost."""
        estimate = self._estimate(step)
        return step if step.est_usd == estimate else replace(step, est_usd=estimate)

    async def _stream(
        self, messages: tuple[Message, ...], request: str
    ) -> AsyncGenerator[PlanStep | Plan | None, None]:
        """Yield the steps of a reply, and last its plan, or None if it contains none."""
        reader, parser = PlanReader(), _StepParser(request, self.capabilities)
        model_request = ModelRequest(
            model=self._model, messages=messages, purpose="planner", max_output_tokens=self._max_output_tokens
        )
        steps: list[PlanStep] = []
        text = ""
        async with aclosing(self._items(model_request)) as items:
            async for item in items:
                match item:
                    case StreamRestarted():
                        reader.restart()
                    case TextDelta():
                        for step in parser.parse(reader.feed(item.text)):
                            steps.append(self.with_estimate(step))
                            yield steps[-1]
                    case ModelReply():
                        text = item.message.content
        complete = reader.finish(text)
        if complete.answer is not None and not steps:
            yield Plan(answer=complete.answer)
            return
        for step in parser.parse(complete.steps):
            steps.append(self.with_estimate(step))
            yield steps[-1]
        yield Plan(steps=topological_order(steps)) if steps or complete.is_empty else None

    async def _items(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the reply as it arrives; a reply still empty after all retries contains no plan and raises no fault."""
        try:
            async with aclosing(stream_whole(self._client, request)) as items:
                async for item in items:
                    yield item
        except ModelFault as fault:
            if fault.kind != "empty":
                raise


class _StepParser:
    """Turns raw steps into steps, each once: the reply to a retried request repeats earlier steps."""

    def __init__(self, request: str, capabilities: Capabilities) -> None:
        self._builder = StepBuilder(request, capabilities)
        self._seen: set[str] = set()

    def parse(self, raw_steps: Iterable[Mapping[str, object]]) -> Iterator[PlanStep]:
        for raw in raw_steps:
            if (text := _to_text(raw)) in self._seen:
                continue
            self._seen.add(text)
            if not is_answer_only(step := self._builder.build(raw)):
                yield step


def planner_messages(request: str, context: str, images: tuple[Image, ...] = ()) -> tuple[Message, ...]:
    """Return the messages for the planner, constant text first so that providers can cache it."""
    context = truncate(context, CONTEXT_CHARS)
    return (
        Message(role="system", content=load_prompt("planner")),
        Message(
            role="user",
            content=f"{context}\n\nRequest: {request}" if context else f"Request: {request}",
            images=images,
        ),
    )


def replan_messages(request: str, context: str, progress: str, reason: str) -> tuple[Message, ...]:
    """Return the messages for replanning the remaining work."""
    system, asked = planner_messages(request, context)
    again = load_prompt("replan", progress=truncate(progress, PROGRESS_CHARS), reason=reason)
    return system, Message(role="user", content=f"{asked.content}\n\n{again}")


def truncate(text: str, limit: int) -> str:
    """Return the text, with its middle left out if it is longer than `limit`."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit * 2 // 3], text[-(limit // 3) :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left_out} characters left out; steps see them all, so plan a step for them …]\n{tail}"
