"""Formulas as TeX: what the page says of them in TeX, or MathML written out."""

from lxml.html import HtmlElement

_TEX = "application/x-tex"
_PAIRS = {"mfrac": "({})/({})", "msup": "{}^{}", "msub": "{}_{}", "mroot": "root({}, {})"}
_DEEPEST = 40


def formula(element: HtmlElement) -> str:
    """Return a formula between dollar signs."""
    text = _tex(element) or " ".join(_written(element, 0).split())
    if not text:
        return ""
    return f"$${text}$$" if element.get("display") == "block" else f"${text}$"


def _tex(element: HtmlElement) -> str:
    for note in element.iter("annotation"):
        if note.get("encoding") == _TEX and note.text:
            return " ".join(note.text.split())
    return " ".join(element.get("alttext", "").split())


def _written(element: HtmlElement, depth: int) -> str:
    if element.tag in ("annotation", "annotation-xml") or depth > _DEEPEST:
        return ""
    parts = [_written(child, depth + 1) for child in element]
    form = _PAIRS.get(str(element.tag))
    if form and len(parts) == 2:
        return form.format(*(part.strip() for part in parts))
    if element.tag == "msqrt":
        return f"sqrt({' '.join(parts).strip()})"
    return (element.text or "") + " ".join(parts)
