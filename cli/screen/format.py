"""Short texts for events: durations, counts, costs, call subjects and decisions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agent.protocol.events import ApprovalRequested, ApprovalResolved, ErrorRaised, RuleSaved
from agent.vocabulary import exit_codes
from agent.vocabulary.outcome import RunnableFile
from agent.vocabulary.plan import SURPRISE
from agent.vocabulary.status import INCOMPLETE
from agent.vocabulary.usage import Usage
from tooling.contract.action import USER
from tooling.contract.image import Image
from tooling.safety.hidden_characters import escape_hidden

COMMAND_TOOL, PYTHON_TOOL = "run_command", "run_python"
COMMAND_TOOLS = (COMMAND_TOOL, PYTHON_TOOL)
_SUBJECT_KEYS = ("command", "code", "url", "pattern", "query", "question")
_PATCHED_FILE = r"^(?:\*\*\* (?:Add|Update|Delete) File: |\+\+\+ b/)(.*?)\s*$"
_SCOPES = {"run": " for this run", "project": " in this folder", "always": ", always"}
_DENIED = "Denied by the user"
PLAN_CANCELLED = "the plan was cancelled, nothing was run"
_DECISIONS = {"allow": "allowed", "deny": "denied", "defer": "deferred", "fail": "refused"}


def format_duration(seconds: float) -> str:
    """Format a duration: 0.4s, 12s, 3m05s, 2h10m."""
    if seconds < 10:
        return f"{seconds:.1f}s"
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def format_count(number: int) -> str:
    """Format a count: 950, 1.2k, 34k, 1.5M."""
    for limit, unit in ((1_000_000, "M"), (1_000, "k")):
        if number >= limit:
            value = number / limit
            return f"{value:.1f}{unit}" if value < 10 else f"{value:.0f}{unit}"
    return str(number)


def format_tokens(usage: Usage) -> str:
    """Format the tokens of calls: 950 tokens, 12k tokens (9.8k cached)."""
    cached = f" ({format_count(usage.cache_read_tokens)} cached)" if usage.cache_read_tokens else ""
    return f"{format_count(usage.total_tokens)} tokens{cached}"


def format_cache_use(usage: Usage) -> str:
    """Format the tokens read from and written to the provider's cache; empty if there are none."""
    counts = ((usage.cache_read_tokens, "read from"), (usage.cache_write_tokens, "written to"))
    parts = [f"{format_count(tokens)} {verb}" for tokens, verb in counts if tokens]
    return f"{' and '.join(parts)} the cache" if parts else ""


def format_cost(usd: float) -> str:
    """Format a cost: $0.0004, $0.03, $12.50."""
    return f"${usd:.4f}" if usd < 0.01 else f"${usd:.2f}"


def shorten_path(path: str | Path) -> str:
    """Return a path with the home folder as ~."""
    path = str(path)
    try:
        home = str(Path.home())
    except RuntimeError:
        return path
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}/") else path


def call_subject(arguments: Mapping[str, object]) -> str:
    """Return the identifying part of a call: its command, its query and place, its path, its action and object."""
    if arguments.get("patch"):
        return ", ".join(dict.fromkeys(re.findall(_PATCHED_FILE, str(arguments["patch"]), re.MULTILINE)))
    if action := _text(arguments, "action"):
        named = _text(arguments, "id") or _text(arguments, "task_id")
        return f"{action} {named or _text(arguments, 'content') or _task_texts(arguments)}".rstrip()
    subject = next((text for name in _SUBJECT_KEYS if (text := _text(arguments, name))), "")
    place = _place(arguments)
    if not (subject or place):
        # A tool of a plugin: its arguments may have any name.
        plain = [name for name, value in arguments.items() if isinstance(value, (str, int, float)) and value != ""]
        return ", ".join(f"{name}: {_text(arguments, name)}" for name in plain)
    if subject == _text(arguments, "url") and (query := _text(arguments, "query")):
        return f"{subject} about {query}".strip()
    if not subject or _text(arguments, "command"):
        return subject or place
    return f"{subject} in {place}" if place not in ("", ".") else subject


def _place(arguments: Mapping[str, object]) -> str:
    """Return the path of a call, with the lines, further paths or file types it is limited to."""
    path, glob = _text(arguments, "path"), _text(arguments, "glob")
    if path and (offset := arguments.get("offset")):
        path += f":{offset}"
    more = arguments.get("more")
    paths = [path, *map(str, more)] if isinstance(more, (list, tuple)) else [path]
    if not glob:
        return ", ".join(filter(None, paths))
    return glob if path in ("", ".") else f"{path}/{glob}"


def _task_texts(arguments: Mapping[str, object]) -> str:
    """Return the contents of the tasks in a call, or their ids."""
    tasks = arguments.get("tasks")
    items = tasks if isinstance(tasks, (list, tuple)) else ()
    texts = [_text(task, "content") or _text(task, "id") for task in items if isinstance(task, Mapping)]
    return "; ".join(filter(None, texts))


def _text(arguments: Mapping[str, object], name: str) -> str:
    value = arguments.get(name)
    return "" if value is None else " ".join(str(value).split())


def call_text(tool: str, arguments: Mapping[str, object]) -> str:
    """Return a call in one line, a command behind a `$`."""
    return f"{'$' if tool == COMMAND_TOOL else tool} {call_subject(arguments)}".strip()


def image_labels(images: Iterable[Image] | None) -> str:
    """Return the labels of the images of a call, each after a space."""
    return "".join(f" {image.label}" for image in images or ())


def is_by_user(answer: ApprovalResolved) -> bool:
    """Whether the decision was made at the keyboard."""
    return answer.by == USER and answer.decision in ("allow", "deny")


def approval_text(answer: ApprovalResolved) -> str:
    """Return the decision of an approval, who made it, and its duration."""
    if not is_by_user(answer):
        why = f": {answer.opinion.text}" if answer.opinion else ""
        return f"{_DECISIONS[answer.decision]} by {answer.by}{why}"
    if answer.decision == "deny":
        return "you declined"
    if answer.edited_command:
        return f"you changed it to: {' '.join(answer.edited_command.split())}"
    return f"you allowed it{_SCOPES.get(answer.scope or '', '')}"


def saved_rule_text(saved: RuleSaved) -> str:
    """Return the saved rule, its scope, and its file."""
    where = f"in {saved.folder}" if saved.folder else "everywhere"
    return f"saved the rule '{saved.rule}' ({where}) in {saved.file}"


def declined_remark(request: ApprovalRequested, output: str) -> str:
    """Return that the user declined a call, with the given reason, which is the end of the call's output."""
    told = output.partition("\n")[0].removeprefix(_DENIED).removeprefix(f": {request.reason}").strip(" .")
    return f"you declined: {told}" if told else "you declined"


def decision_text(error: ErrorRaised) -> str:
    """Return the user's decision if it ended the run: a decision is not a failure."""
    subject, mark, _ = error.message.partition(f": {_DENIED}")
    if mark and error.exit_code == exit_codes.APPROVAL:
        return f"not done, because you declined: {subject}"
    if error.exit_code == exit_codes.INTERRUPTED:
        return "stopped by you"
    return error.message if error.message == PLAN_CANCELLED and not error.hint else ""


def shortfall_text(error: ErrorRaised) -> str:
    """Return what an answer lacks, if that is all that is wrong; the calls that failed or were denied are above it."""
    if error.exit_code == exit_codes.APPROVAL:
        return f"not done: {error.message}"
    is_partial = error.exit_code == exit_codes.FAILED and error.message.startswith(INCOMPLETE)
    return error.message.removeprefix(INCOMPLETE) if is_partial else ""


def command_change_texts(changes: Mapping[str, str], written: Sequence[str]) -> list[str]:
    """Return what commands did to files, by path and status, without files that tools wrote as well."""
    others = [path for path in changes if path not in written]
    changed = ", ".join(escape_hidden(path) for path in others if changes[path] != "deleted")
    deleted = ", ".join(escape_hidden(path) for path in others if changes[path] == "deleted")
    return [
        *([f"commands changed {changed}"] if changed else []),
        *([f"commands deleted {deleted}"] if deleted else []),
    ]


def answer_text(answer: str | None) -> str:
    """Return the answer to a question in one line."""
    words = " ".join((answer or "").split())
    return f"answered: {words}" if words else "not answered"


def replan_text(reason: str) -> str:
    """Return the headline of a revised plan."""
    return f"replanning: {reason.removeprefix(SURPRISE)}"


def resume_hint(command: str, *, in_repl: bool = False) -> str:
    """Return how to resume a run that did not finish."""
    return f"resume with /resume, or: {command}" if in_repl else f"resume with: {command}"


NO_MODEL_AT_PROMPT = """\
do one of the following:
  1. choose a model: `/model provider/name`; most need an API key, such as OPENAI_API_KEY or ANTHROPIC_API_KEY
  2. start a local server: `ollama run qwen2.5-coder`; ollama, llama.cpp and LM Studio are detected automatically
`/demo` needs no model."""


def hint_lines(hint: str, *, in_repl: bool) -> list[str]:
    """Return the lines of a hint; at the prompt it names commands of the prompt instead of the shell's."""
    if in_repl:
        from agent.model.local_server import NO_MODEL_HINT

        hint = NO_MODEL_AT_PROMPT if hint == NO_MODEL_HINT else hint
    return hint.splitlines()


WILL_RUN = "these will run when you use the folder; commands created or changed them:"
_MAX_RUNNABLE = 20


def runnable_lines(files: Sequence[RunnableFile]) -> list[str]:
    """Return one line for each file that other tools run, and the number of further ones."""
    lines = [f"  {escape_hidden(file.path)} ({file.runs})" for file in files[:_MAX_RUNNABLE]]
    return [*lines, f"  and {len(files) - _MAX_RUNNABLE} more"] if len(files) > _MAX_RUNNABLE else lines
