"""`/context`: the tokens of the next request by part, compared with the model's window, and past compactions."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from agent.assembly import UNKNOWN_CONTEXT_TOKENS
from agent.config.user_dirs import data_dir
from agent.execution.graph.plan_tool import PlanTool
from agent.execution.step.compact import CHARS_PER_TOKEN, OMITTED, ContextSize, size_of
from agent.execution.step.prompts import system_message
from agent.memory.excerpt import excerpt
from agent.memory.memory_file import MemoryFile
from agent.model.prices import PriceTable
from agent.plugins.find import load_full_catalog
from agent.protocol.envelope import Envelope
from agent.protocol.events import ContextCompacted, RunStarted
from agent.protocol.masking import mask_strings
from agent.sessions.log.log_index import LogLine, read_lines
from agent.sessions.resume.conversation import read_conversation
from agent.sessions.resume.step_history import EffectOf
from agent.sessions.store import SessionStore
from agent.vocabulary.compaction import SUMMARY_PREFIX
from agent.vocabulary.message import Message
from agent.vocabulary.plan import LEAD
from agent.workspace.project_notes import read_notes
from agent.workspace.request_context import background
from cli.pages.pages import format_age
from cli.repl.state import ReplState
from cli.screen.format import format_count
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.contract.tool import ToolSpec
from tooling.safety.secrets.redact import Redactor

# Parts of a request by the tag around them; untagged text is the user's.
_TAGS = {
    "environment": "environment",
    "project_notes": "project notes",
    "memory": "memory",
    "instructions": "instructions",
    "file": "attachments",
    "stdin": "attachments",
}
_TAGGED = lazy_pattern(rf"<({'|'.join(_TAGS)})\b[^>\n]*>\n.*?\n</\1>", re.DOTALL)
_OUTPUT = "! output"
_PARTS = (
    *(
        "system text",
        "tools",
        "environment",
        "project notes",
        "memory",
        "instructions",
        "attachments",
        "requests",
        "replies",
    ),
    *("tool calls", "tool results", "images", "summaries", _OUTPUT),
)
_NAME_CELLS = max(map(len, _PARTS))
_MAX_LISTED = 5
# No session has a log of this name.
_NO_LOG = "no-session"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """The conversation of a session, its last run, and the number of tokens per character.

    `tokens_per_char` is an estimate until the provider has counted a request.
    """

    log: Path
    effect_of: EffectOf
    messages: Sequence[Message]
    last_run: Envelope | None
    compactions: Sequence[Envelope]
    schema_chars: int
    tokens_per_char: float
    is_counted: bool

    @property
    def started(self) -> RunStarted | None:
        """The first event of the last run."""
        event = self.last_run.event if self.last_run else None
        return event if isinstance(event, RunStarted) else None

    @property
    def share(self) -> float | None:
        """Share of the window in use; None until the provider has counted a request."""
        window = self.started.context_window if self.started else None
        chars = self.schema_chars + size_of((system_message(), *self.messages))
        return chars * self.tokens_per_char / window if self.is_counted and window else None

    def count_tokens(self, *, before_last_run: bool = False) -> int:
        """Return the tokens of the conversation alone, now or before the last run."""
        messages = self.messages
        if before_last_run and self.last_run:
            messages = read_conversation(self.log, self.effect_of, before=self.last_run.run_id)
        return round(size_of(messages) * self.tokens_per_char)


def read_context(state: ReplState, session_id: str | None) -> SessionContext:
    """Read the conversation of a session and calibrate its size by the provider's last count."""
    specs = load_full_catalog(state.environ, state.read_settings().settings).specs
    effects = {spec.name: spec.effect for spec in specs}
    data = data_dir(state.environ)
    log = SessionStore(data).find(session_id).events if session_id else data / _NO_LOG
    last_run, counted, compactions = _scan(log)
    schema_chars = _schema_chars((*specs, PlanTool.spec), last_run)
    ratio = 1 / CHARS_PER_TOKEN
    spent = counted.spent() if counted else None
    if counted and spent:
        sent = read_conversation(log, effects.get, before_seq=counted.seq)
        ratio = spent.input_tokens / (schema_chars + size_of((system_message(), *sent)))
    return SessionContext(
        log=log,
        effect_of=effects.get,
        messages=read_conversation(log, effects.get),
        last_run=last_run,
        compactions=compactions,
        schema_chars=schema_chars,
        tokens_per_char=ratio,
        is_counted=spent is not None,
    )


def _schema_chars(specs: Sequence[ToolSpec], last_run: Envelope | None) -> int:
    """Return the size of the tool schemas: those of the last run, or all of them before the first."""
    offered = last_run.event.tools if last_run and isinstance(last_run.event, RunStarted) else None
    return len(json.dumps([spec.to_openai_tool() for spec in specs if offered is None or spec.name in offered]))


def _scan(log: Path) -> tuple[Envelope | None, LogLine | None, list[Envelope]]:
    """Return the start of the last run, the lead's last reply whose request was counted, and the compactions."""
    last_run: Envelope | None = None
    counted: LogLine | None = None
    compactions: list[Envelope] = []
    for line in read_lines(log):
        if line.type == RunStarted.type:
            last_run = line.envelope() or last_run
        elif line.step_id != LEAD:
            continue
        elif line.type == "message" and (spent := line.spent()) and spent.input_tokens:
            counted = line
        elif line.type == ContextCompacted.type and (envelope := line.envelope()):
            compactions.append(envelope)
    return last_run, counted, compactions


def context_lines(state: ReplState, session_id: str | None, shell_output: str) -> list[str]:
    """Return the parts of the next request with their tokens, the total, the remaining space, and past compactions."""
    context = read_context(state, session_id)
    settings = state.read_settings().settings
    model = settings.model or (context.started.model if context.started else "")
    known = PriceTable().context_size(model)
    window = known or UNKNOWN_CONTEXT_TOKENS
    coming = Message(role="user", content=_unsaid(state, context.messages))
    sizes = {"system text": size_of((system_message(),)), "tools": context.schema_chars, _OUTPUT: len(shell_output)}
    for message in (*context.messages, coming):
        for part, chars in _sizes(message):
            sizes[part] = sizes.get(part, 0) + chars
    tokens = {part: round(sizes[part] * context.tokens_per_char) for part in _PARTS if sizes.get(part)}
    total = round(sum(sizes.values()) * context.tokens_per_char)
    room = ContextSize.of_window(window, settings.max_output_tokens).room((system_message(),))
    left = round((room - size_of((*context.messages, coming)) - len(shell_output)) * context.tokens_per_char)
    how = "" if context.is_counted else ", estimated"
    return [
        *(_row(part, count, f"{count / window:.1%}") for part, count in tokens.items()),
        _row("total", total, f"{total / window:.0%} of the window{how}"),
        _row("left", max(0, left), "before the oldest parts are shortened"),
        _row("window", window, "" if known else "assumed, as the model's is not known").rstrip(),
        *_compaction_lines(context.compactions),
    ]


def _row(name: str, tokens: int, note: str) -> str:
    return f"  {name:<{_NAME_CELLS}}  {format_count(tokens):>5} tokens  {note}"


def _unsaid(state: ReplState, messages: Sequence[Message]) -> str:
    """Return the notes and the memory that the next request adds because the model has not seen them yet."""
    loaded = state.read_settings()
    redact = Redactor(loaded.secrets).redact
    notes = mask_strings(read_notes(state.cwd), redact) if loaded.settings.project_notes else ()
    memory = excerpt(redact(MemoryFile(data_dir(state.environ)).read())) if loaded.settings.memory else ""
    said = "\n".join(message.content for message in messages if message.role == "user")
    return background(opening="", notes=notes, memory=memory, instructions=loaded.settings.instructions, said=said)


def _sizes(message: Message) -> list[tuple[str, int]]:
    """Return the parts of a message and their sizes; parts that are neither text nor calls are images."""
    calls = sum(len(str(call.arguments)) for call in message.tool_calls)
    rest = size_of((message,)) - len(message.content) - calls
    other = [("tool calls", calls), ("images", rest)]
    match message.role:
        case "assistant":
            return [("replies", len(message.content)), *other]
        case "tool":
            return [("tool results", len(message.content)), *other]
    if message.content.startswith((SUMMARY_PREFIX, OMITTED)):
        return [("summaries", len(message.content)), *other]
    tagged = [(_TAGS[found[1]], len(found[0])) for found in _TAGGED.finditer(message.content)]
    words = len(message.content) - sum(size for _, size in tagged)
    return [*tagged, ("requests", words), *other]


def _compaction_lines(compactions: Sequence[Envelope]) -> list[str]:
    if not compactions:
        return []
    return [
        "shortened so far:",
        *(f"  {_describe(one)}" for one in compactions[-_MAX_LISTED:]),
        f"`agent runs events {compactions[-1].run_id} --type context` shows the last change, /export the whole text",
    ]


def _describe(envelope: Envelope) -> str:
    event = envelope.event
    assert isinstance(event, ContextCompacted)
    change = event.compaction
    what = [f"{len(change.shortened)} results left out"] if change.shortened else []
    what += [f"{change.end - change.start} messages summarized"] if change.end > change.start else []
    sizes = f"{format_count(event.tokens_before)} → {format_count(event.tokens_after)} tokens"
    return f"{format_age(envelope.ts)}: {', '.join(what)}, {sizes}"
