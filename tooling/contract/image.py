"""An image that a model sees, as a reference to its stored bytes."""

from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One image of a message or a tool result; the session's `blobs/` has its bytes under `sha256`."""

    sha256: str
    media_type: str
    width: int
    height: int
    size: int
    name: str = ""

    @property
    def label(self) -> str:
        """Return the text for places where the image cannot be shown."""
        return f"[image {self.name} {self.width}x{self.height}]".replace("  ", " ")

    @property
    def description(self) -> str:
        """Return type, dimensions and size, as in `image/png 800x600, 34 kB`."""
        size = f"{self.size} bytes" if self.size < 1000 else f"{self.size / 1000:.0f} kB"
        return f"{self.media_type} {self.width}x{self.height}, {size}"
