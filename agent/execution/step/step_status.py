"""The status of a step that answered, decided from its calls: whether it did all of its work.

| the calls of the step                                              | status  |
|--------------------------------------------------------------------|---------|
| none, or only notes                                                | ok      |
| some failed, and a later one succeeded                             | ok      |
| the last one failed, but only looked: a file, a page, a search     | ok      |
| every one failed                                                   | partial |
| the last one is a command or a change, and it failed               | partial |
| a question was not answered                                        | partial |

A search or comparison that answers with exit code 1, such as `grep` without a match, has not failed.
"""

from collections.abc import Callable, Sequence

from agent.execution.step.stalls import MUTATING
from agent.vocabulary.plan import PLAN_TOOL
from agent.vocabulary.status import StepStatus
from agent.vocabulary.step import CallFact
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.result import BAD_ARGUMENTS

ASK_TOOL = "ask_user"
# Calls that are not work on the task: neither their failure nor their success counts.
_ASIDE = frozenset({"note", "ask", "remember", "forget"})
# Exit code 1 of these programs is an answer: no match, different, false.
_ANSWERS_WITH_1 = frozenset(
    ("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "pgrep", "diff", "cmp", "test", "[", "[[", "which", "type")
)
_COMMAND_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerStatus:
    """The status of a step that answered; `shortfall` is what a partial one lacks."""

    status: StepStatus = "ok"
    shortfall: str = ""
    questions: tuple[str, ...] = ()


def answer_status(facts: Sequence[CallFact], effect_of: Callable[[str], str | None]) -> AnswerStatus:
    """Return the status of a step that answered after these calls."""
    if questions := _open_questions(facts):
        return AnswerStatus(status="partial", shortfall=unanswered(questions[-1]), questions=questions)
    work = [fact for fact in facts if _is_work(fact, effect_of)]
    failed = [index for index, fact in enumerate(work) if _has_failed(fact)]
    if not failed:
        return AnswerStatus()
    if len(failed) == len(work):
        return AnswerStatus(status="partial", shortfall=f"every attempt failed: {_describe(work[-1])}")
    last = work[failed[-1]]
    is_recovered = failed[-1] < len(work) - 1
    if is_recovered or effect_of(last.tool) not in MUTATING:
        return AnswerStatus()
    return AnswerStatus(status="partial", shortfall=f"the last attempt failed: {_describe(last)}")


def unanswered(question: str) -> str:
    return f"unanswered question: {question}"


def _open_questions(facts: Sequence[CallFact]) -> tuple[str, ...]:
    """Return the questions since the last answer; a call with invalid arguments asked nothing."""
    questions: list[str] = []
    for fact in facts:
        if fact.tool != ASK_TOOL or fact.status == "cancelled" or fact.exit_code == BAD_ARGUMENTS:
            continue
        question = str(fact.args.get("question", "")).strip()
        questions = [] if fact.success else [*questions, question] if question else questions
    return tuple(questions)


def _is_work(fact: CallFact, effect_of: Callable[[str], str | None]) -> bool:
    is_aside = effect_of(fact.tool) in _ASIDE and not (fact.tool == PLAN_TOOL and fact.success)
    return fact.status != "cancelled" and not is_aside


def _has_failed(fact: CallFact) -> bool:
    return not fact.success and not (fact.exit_code == 1 and _answers_with_1(str(fact.args.get("command", ""))))


def _answers_with_1(command: str) -> bool:
    """Whether exit code 1 of a command line comes from a program that uses it as an answer."""
    import shlex

    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    try:
        words = list(lexer)
    except ValueError:
        return False
    if words[:1] == ["cd"] and "&&" in words[:4]:
        words = words[words.index("&&") + 1 :]
    if {"&&", "||", "&"} & set(words):
        # It may be the exit code of another program.
        return False
    starts = [index + 1 for index, word in enumerate(words) if word in ("|", ";")]
    last = words[starts[-1] if starts else 0 :]
    if last[:1] == ["git"]:
        return last[1:2] == ["grep"] or (last[1:2] == ["diff"] and {"--exit-code", "--quiet"} & set(last) != set())
    return last[:2] == ["command", "-v"] or bool(last and last[0].rpartition("/")[2] in _ANSWERS_WITH_1)


def _describe(fact: CallFact) -> str:
    command = " ".join(str(fact.args.get("command") or "").split())
    if command:
        shown = command if len(command) <= _COMMAND_CHARS else f"{command[: _COMMAND_CHARS - 1]}…"
        return (
            f"`{shown}` {'ran out of time' if fact.status == 'timeout' else f'ended with exit code {fact.exit_code}'}"
        )
    subject = fact.args.get("path") or fact.args.get("url") or fact.args.get("query")
    return f"{fact.tool}{f' {subject}' if subject else ''}"
