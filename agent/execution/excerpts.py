"""What a step is told of those it depends on: the results in bounded excerpts, and where the whole of each stands."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.execution.result.compose import results_text, share_of
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorResponse
from tooling.finish import output_stem

EXCERPTS_CHARS = 6000


async def excerpts(
    found: Sequence[tuple[PlanStep, ExecutorResponse]],
    outputs: Path | None,
    mask: Callable[[str], str] = lambda text: text,
) -> str:
    """Return the results as marked data; one that is cut is kept whole in `outputs`, and its path is told.

    What stays on disk is masked.
    """
    share = share_of(EXCERPTS_CHARS, len(found))
    places: dict[str, str] = {}
    for step, response in found:
        if len(response.text) > share and outputs is not None:
            path = outputs / f"{output_stem(step.id, response.attempts)}-answer.txt"
            if await asyncio.to_thread(_is_written, path, mask(response.text)):
                places[step.id] = str(path)
    return results_text(found, EXCERPTS_CHARS, places=places)


def _is_written(path: Path, text: str) -> bool:
    """Write a file for its owner alone; without room for it the excerpt must do."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError:
        return False
    return True
