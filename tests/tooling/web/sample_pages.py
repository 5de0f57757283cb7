"""The corpus of HTML pages: the facts each must keep and the boilerplate that must be removed."""

import json
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "data" / "pages"
_LINK = r"\[([^\]\n]*)\]\(<?([^)>\s]+)>?\)"
_MARKUP = r"[*_`\\|#>~]|\[x?\]"


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplePage:
    """One page; `shape` is Markdown that the extraction must contain verbatim."""

    name: str
    html: bytes
    url: str
    title: str
    date: str = ""
    language: str = ""
    keep: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    shape: tuple[str, ...] = ()

    def kept_facts(self, text: str) -> list[str]:
        """Return the facts that a text contains."""
        plain = normalize(text)
        return [fact for fact in self.keep if normalize(fact) in plain]

    def remaining_boilerplate(self, text: str) -> list[str]:
        """Return the boilerplate that a text still contains."""
        plain = normalize(text)
        return [scrap for scrap in self.gone if normalize(scrap) in plain]


def normalize(text: str) -> str:
    """Remove markup and spaces, so that formatting favors no extraction method."""
    text = re.sub(_LINK, r"\1 \2 ", text)
    text = re.sub(_MARKUP, "", text)
    return "".join(unicodedata.normalize("NFC", text).split())


def load_pages() -> list[SamplePage]:
    return [_load_page(path) for path in sorted(FOLDER.glob("*.html"))]


def _load_page(path: Path) -> SamplePage:
    fields = json.loads(path.with_suffix(".json").read_text())
    lists = {name: tuple(fields.pop(name, ())) for name in ("keep", "gone", "shape")}
    return SamplePage(name=path.stem, html=path.read_bytes(), **fields, **lists)
