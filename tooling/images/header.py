"""Recognize images by their first bytes, and read their dimensions without decoding them."""

from collections.abc import Callable
from pathlib import Path

from tooling.contract.fast_dataclass import dataclass
from tooling.files.open_regular import open_regular

# Enough of a file to recognize every format.
SNIFF_BYTES = 16
_PNG, _JPEG, _GIFS = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", (b"GIF87a", b"GIF89a")
# Start-of-frame markers have the dimensions; the three left out share their range but mean something else.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})


class ImageProblem(Exception):
    """An image cannot be used with a model; has the reason and a hint for the user."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint


BROKEN = "the image is damaged or incomplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageHeader:
    """The format and the dimensions of an image."""

    media_type: str
    width: int
    height: int

    @property
    def long_side(self) -> int:
        return max(self.width, self.height)


def detect_media_type(start: bytes) -> str:
    """Return the media type of a supported image by its first bytes, or an empty string."""
    if start.startswith(_PNG):
        return "image/png"
    if start.startswith(_JPEG):
        return "image/jpeg"
    if start.startswith(_GIFS):
        return "image/gif"
    return "image/webp" if start[:4] == b"RIFF" and start[8:12] == b"WEBP" else ""


def is_image_file(path: Path) -> bool:
    """Return whether a file is a supported image; its bytes decide, not its name."""
    try:
        with open_regular(path) as file:
            return bool(detect_media_type(file.read(SNIFF_BYTES)))
    except OSError:
        return False


def read_header(data: bytes) -> ImageHeader | None:
    """Return the header of a complete image, None if it is no supported image; raises ImageProblem if it is broken."""
    media_type = detect_media_type(data)
    if not media_type:
        return None
    width, height = _READERS[media_type](data)
    if not (width and height and _is_complete(media_type, data)):
        raise ImageProblem(BROKEN)
    return ImageHeader(media_type=media_type, width=width, height=height)


def _png_size(data: bytes) -> tuple[int, int]:
    if data[12:16] != b"IHDR":
        return 0, 0
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def _gif_size(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _JPEG_FRAMES:
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        if marker == 0xFF:
            at += 1
        elif marker in _JPEG_WITHOUT_LENGTH:
            at += 2
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4]))
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8X":
            return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 " if data[23:26] == b"\x9d\x01\x2a":
            return int.from_bytes(data[26:28], "little") & 0x3FFF, int.from_bytes(data[28:30], "little") & 0x3FFF
        case _:
            return 0, 0


_READERS: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "image/png": _png_size,
    "image/jpeg": _jpeg_size,
    "image/gif": _gif_size,
    "image/webp": _webp_size,
}


def _is_complete(media_type: str, data: bytes) -> bool:
    """Whether the file is complete: providers reject a truncated image, and with it the whole request."""
    match media_type:
        case "image/png":
            return b"IEND" in data
        case "image/jpeg":
            return b"\xff\xd9" in data
        case "image/gif":
            return data.rstrip(b"\0").endswith(b";")
        case _:
            return int.from_bytes(data[4:8], "little") + 8 <= len(data)
