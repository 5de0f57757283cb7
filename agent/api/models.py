"""Request and response models of the API, as in the OpenAPI document."""

from collections.abc import Mapping
from datetime import UTC
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from agent.service.task import (
    DEFAULT_USER,
    MAX_PRIORITY,
    MIN_PRIORITY,
    PendingQuestion,
    ScheduleMode,
    TaskRequest,
)
from agent.vocabulary.task_config import TaskConfig
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import encode

MAX_PROMPT_CHARS = 200_000
_Name = Annotated[str, Field(max_length=200)]
# Text in the database cannot contain NUL.
_Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
Prompt = Annotated[str, Field(min_length=1, max_length=MAX_PROMPT_CHARS, pattern=r"^[^\x00]*[^\x00\s][^\x00]*$")]
Backend = Literal["", "sandbox", "host", "docker"]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TaskBody(_Body):
    """A task to create: at once, from a time on (`run_at`), or in the nightly window."""

    prompt: Prompt
    config: TaskConfig = Field(default_factory=TaskConfig)
    user_id: _Name = DEFAULT_USER
    session_id: _Name = ""
    mode: ScheduleMode = ScheduleMode.IMMEDIATE
    run_at: AwareDatetime | None = None
    priority: int = Field(default=0, ge=MIN_PRIORITY, le=MAX_PRIORITY)
    cwd: Annotated[_Text, Field(max_length=4096)] = ""
    backend: Backend = ""
    callback_url: Annotated[_Text, Field(max_length=2000)] = ""

    def to_request(self, settings: Mapping[str, str]) -> TaskRequest:
        """Return the request for the queue; `settings` are those of the server."""
        return TaskRequest(
            prompt=self.prompt,
            config=self.config,
            user_id=self.user_id or DEFAULT_USER,
            session_id=self.session_id,
            mode=ScheduleMode.SCHEDULED if self.run_at else self.mode,
            run_at=self.run_at.astimezone(UTC) if self.run_at else None,
            priority=self.priority,
            cwd=self.cwd,
            backend=self.backend,
            callback_url=self.callback_url,
            settings=settings,
        )


class ScheduleBody(_Body):
    """A task to create repeatedly; `cron` has five fields and is read in the time zone `zone`."""

    cron: Annotated[_Text, Field(min_length=1, max_length=200)]
    zone: Annotated[_Text, Field(max_length=100)] = "UTC"
    name: Annotated[_Text, Field(max_length=100)] = ""
    task: TaskBody


class AnswerBody(_Body):
    """The answer to a question."""

    answer: Annotated[_Text, Field(min_length=1, max_length=100_000)]


class DecisionBody(_Body):
    """The decision about an approval; `command` runs instead, `remember` is how long the decision lasts."""

    decision: Literal["allow", "deny"]
    command: Annotated[_Text, Field(min_length=1, max_length=100_000)] | None = None
    remember: Literal["run", "project", "always"] | None = None
    remark: Annotated[_Text, Field(max_length=10_000)] = ""


class CallbackBody(BaseModel):
    """An event of a run, as an executor reports it; further fields are ignored."""

    event: Annotated[_Text, Field(min_length=1, max_length=100)]
    session_id: Annotated[_Text, Field(min_length=1, max_length=100)]
    data: dict[str, object] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionData:
    """A question or an approval; `card` is exactly what a terminal shows, with hidden characters escaped."""

    question_id: str
    task_id: str
    session_id: str
    kind: str
    state: str
    text: str
    card: str
    options: tuple[str, ...]
    cwd: str
    reason: str
    rule: str
    tool: str
    step_id: str
    asked_at: str
    expires_at: str
    answer: str


def question_data(question: PendingQuestion, card: str) -> QuestionData:
    """Return a question in the form of replies; `card` is the text that a terminal shows."""
    return QuestionData(
        question_id=question.question_id,
        task_id=question.task_id,
        session_id=question.session_id,
        kind=question.kind,
        state=question.state,
        text=question.text,
        card=card,
        options=question.options,
        cwd=question.cwd,
        reason=question.reason,
        rule=question.rule,
        tool=question.tool,
        step_id=question.step_id,
        asked_at=str(encode(question.asked_at)),
        expires_at=str(encode(question.expires_at)),
        answer=question.answer,
    )
