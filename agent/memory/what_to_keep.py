"""Ask a model what to remember from a run, and parse its decision strictly."""

import json
import re

from agent.memory.entries import MAX_ENTRY_CHARS, Tag
from agent.memory.triggers import asks_to_remember
from agent.model.port import ModelRequest
from agent.prompts.load import load_prompt
from agent.vocabulary.message import Message
from tooling.contract.fast_dataclass import dataclass

CATEGORIES: dict[str, Tag] = {
    "preference": "PREF",
    "decision": "DECISION",
    "config": "CONFIG",
    "agreement": "AGREEMENT",
}
# A reasoning model spends most of it before the reply, which is one line.
OUTPUT_TOKENS = 1000
_REQUEST_CHARS, _ANSWER_CHARS = 4000, 2000
# Shorter words are too common to compare.
_WORD_CHARS = 4
_QUESTION = ("?", "？", "؟")
_PUNCTUATION = ".,;:!?()[]{}\"'`«»“”„"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCandidate:
    """A text to remember and its tag."""

    tag: Tag
    content: str


def build_decision_request(request: str, answer: str, model: str) -> ModelRequest:
    """Build the request to the model from the user's request and the answer alone."""
    request, answer = _escape(request, _REQUEST_CHARS), _escape(answer, _ANSWER_CHARS)
    content = f"<request>\n{request}\n</request>\n\n<answer>\n{answer}\n</answer>"
    return ModelRequest(
        model=model,
        purpose="memory",
        messages=(Message(role="system", content=load_prompt("remember")), Message(role="user", content=content)),
        max_output_tokens=OUTPUT_TOKENS,
    )


def parse_decision(reply: str) -> MemoryCandidate | None:
    """Return the text to save, or None for anything that is not exactly in the requested format."""
    found = re.fullmatch(r"\s*(?:```(?:json)?\s*)?(\{.*\})\s*(?:```\s*)?", reply, re.DOTALL)
    try:
        data: object = json.loads(found[1]) if found else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or data.keys() != {"save", "category", "content"} or data["save"] is not True:
        return None
    category, content = data["category"], data["content"]
    if not (isinstance(category, str) and category in CATEGORIES and isinstance(content, str) and content.strip()):
        return None
    is_fact = len(content) <= MAX_ENTRY_CHARS and not any(mark in content for mark in _QUESTION)
    return MemoryCandidate(tag=CATEGORIES[category], content=content) if is_fact else None


def is_grounded(content: str, request: str, answer: str) -> bool:
    """Return whether a text comes from the user's words, or from the answer if they asked to remember that.

    Names, addresses, commands and numbers must appear verbatim, and at least a third of the plain words. So a web page
    quoted in an answer cannot add a command or a host that the user never wrote.
    """
    known = (f"{request}\n{answer}" if asks_to_remember(request) else request).casefold()
    tokens = [token.strip(_PUNCTUATION) for token in content.casefold().split()]
    exact = [token for token in tokens if not all(part.isalpha() for part in re.split("[-'’]", token))]
    words = _words(content.casefold())
    return all(token in known for token in exact) and 3 * sum(word in known for word in words) >= len(words)


def _words(text: str) -> list[str]:
    """Return the significant words without their endings; scripts without spaces give pairs of characters."""
    found = re.findall(r"[^\W\d_]+", text)
    pairs = [word[at : at + 2] for word in found if _has_no_spaces(word) for at in range(len(word) - 1)]
    spaced = [word for word in found if not _has_no_spaces(word) and len(word) >= _WORD_CHARS]
    return [*(word[: max(_WORD_CHARS, len(word) - 2)] for word in spaced), *pairs]


def _has_no_spaces(word: str) -> bool:
    # Thai to Burmese, and everything from the CJK radicals on.
    return "\u0e00" <= word[0] <= "\u109f" or word[0] >= "\u2e80"


def _escape(text: str, limit: int) -> str:
    """Truncate a text and escape tags, so that it cannot close the tag around it."""
    cut = text if len(text) <= limit else f"{text[:limit]}\n[… {len(text) - limit} characters left out]"
    return cut.replace("</", "<\\/")
