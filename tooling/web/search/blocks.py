"""What was found as text: numbered blocks for the model, one line each for the person."""

from tooling.web.search.search import Found
from tooling.web.search.types import Hit
from tooling.web.untrusted import as_data

NO_RESULTS = "(no results)"


def for_model(found: Found) -> str:
    """Return the results as data with their origin, and below them what did not work."""
    blocks = "\n\n".join(_block(number, hit, found) for number, hit in enumerate(found.hits, 1))
    told = as_data(blocks, origin=f"search by {', '.join(found.answered)}") if blocks else NO_RESULTS
    return "\n".join((told, *(f"[{name} was asked before: {words}]" for name, words in found.failed.items())))


def for_person(found: Found) -> str:
    """Return titles and addresses."""
    return "\n".join(f"{number}. {hit.title}  {hit.url}" for number, hit in enumerate(found.hits, 1)) or NO_RESULTS


def _block(number: int, hit: Hit, found: Found) -> str:
    lines = [f"{number}. {hit.title}", hit.date, hit.url, hit.snippet]
    if len(found.answered) > 1:
        lines.append(f"(found by {', '.join(hit.found_by)})")
    return "\n   ".join(line for line in lines if line)
