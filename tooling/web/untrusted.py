"""Text from strangers, marked as data with its origin; nothing in it can close the mark or open another."""

import re

_TAG = "web"
# The wide and the small form of the bracket and of the slash look the same to some readers.
_OWN_TAG = rf"[<\uff1c\ufe64](?=[\s/\uff0f]*{_TAG}\b)"


def as_data(text: str, *, origin: str) -> str:
    """Return the text between marks that say where it comes from."""
    inner = re.sub(_OWN_TAG, "&lt;", text, flags=re.IGNORECASE)
    return f'<{_TAG} origin="{_attribute(origin)}">\n{inner}\n</{_TAG}>'


def _attribute(text: str) -> str:
    return " ".join(text.split()).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
