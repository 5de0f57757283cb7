"""Large pastes: a few words stand for each in the prompt, and all of it goes along with the request."""

_MOST_CHARS = 2000
_MOST_LINES = 30


class Pastes:
    """What was pasted since the last request."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def taken(self, pasted: str) -> str:
        """Return what stands in the prompt: the text itself, or a few words for one that is long."""
        text = pasted.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if len(text) <= _MOST_CHARS and lines <= _MOST_LINES:
            return text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        sign = f"[paste {len(self._texts) + 1}: {size}]"
        self._texts[sign] = text
        return sign

    def whole(self, typed: str) -> str:
        """Return what was typed with the pasted texts in their places."""
        for sign, text in self._texts.items():
            typed = typed.replace(sign, text)
        return typed

    def forget(self) -> None:
        """Let go of what was sent or dropped."""
        self._texts.clear()
