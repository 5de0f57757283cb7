"""How much of a page's text its links may be: a long address before thousands of short ones would be gigabytes."""

LONGEST_PLACE = 2_000
MOST_CHARS = 2_000_000


class LinkRoom:
    """Says of each link whether its address is still written, or only its words."""

    def __init__(self) -> None:
        self._left = MOST_CHARS

    def takes(self, place: str) -> bool:
        """Say whether there is room for an address, and take it."""
        if len(place) > min(LONGEST_PLACE, self._left):
            return False
        self._left -= len(place)
        return True
