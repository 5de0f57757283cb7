"""The pages of the corpus: what must be kept of each, what must be gone, and how facts are looked for."""

import json
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "data" / "pages"
_LINK = r"\[([^\]\n]*)\]\(<?([^)>\s]+)>?\)"
_MARKUP = r"[*_`\\|#>~]|\[x?\]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page; `shape` is Markdown that our own extraction has to contain word for word."""

    name: str
    html: bytes
    url: str
    title: str
    date: str = ""
    language: str = ""
    keep: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    shape: tuple[str, ...] = ()

    def kept(self, text: str) -> list[str]:
        """Return the facts that a text still has."""
        plain = bare(text)
        return [fact for fact in self.keep if bare(fact) in plain]

    def left_over(self, text: str) -> list[str]:
        """Return the boilerplate that a text still has."""
        plain = bare(text)
        return [scrap for scrap in self.gone if bare(scrap) in plain]


def bare(text: str) -> str:
    """Return a text without markup and spaces: how a fact is set is no part of it, and no method gains by it."""
    text = re.sub(_LINK, r"\1 \2 ", text)
    text = re.sub(_MARKUP, "", text)
    return "".join(unicodedata.normalize("NFC", text).split())


def corpus() -> list[Page]:
    """Return all pages."""
    return [_page(path) for path in sorted(FOLDER.glob("*.html"))]


def _page(path: Path) -> Page:
    told = json.loads(path.with_suffix(".json").read_text())
    lists = {name: tuple(told.pop(name, ())) for name in ("keep", "gone", "shape")}
    return Page(name=path.stem, html=path.read_bytes(), **told, **lists)
