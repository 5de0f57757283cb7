"""Small images of every supported format, made with nothing but zlib or copied from an encoder's output."""

import base64
import zlib


def png(width: int = 4, height: int = 3, *, noise: bytes = b"") -> bytes:
    """Return a gray image; `noise` is repeated as its pixels, to make it large."""
    row = (noise * (width // max(len(noise), 1) + 1))[:width] if noise else b"\x80" * width
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", width.to_bytes(4) + height.to_bytes(4) + b"\x08\x00\x00\x00\x00")
        + _chunk(b"IDAT", zlib.compress((b"\x00" + row) * height, 1))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4)


GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAFA3PEY8MlBGQUZaVVBfeMiCeG5uePWvuZHI////////////////////////////////"
    "////////////////////2wBDAVVaWnhpeOuCguv/////////////////////////////////////////////////////////////"
    "////////////wAARCAACAAUDASIAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUF"
    "BAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVW"
    "V1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi"
    "4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAEC"
    "AxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVm"
    "Z2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq"
    "8vP09fb3+Pn6/9oADAMBAAIRAxEAPwCGiiioOk//2Q=="
)
WEBP_LOSSY = base64.b64decode("UklGRjIAAABXRUJQVlA4ICYAAABwAQCdASoFAAIAB0CWJaACdAFAAAD+6DixhNJbd/uD9QfxA2AAAA==")
WEBP_LOSSLESS = base64.b64decode("UklGRh4AAABXRUJQVlA4TBEAAAAvBEAAAAdQhSJXof+BiOh/AAA=")
WEBP_EXTENDED = base64.b64decode(
    "UklGRlYAAABXRUJQVlA4WAoAAAAQAAAABAAAAQAAQUxQSAoAAAABB1CyiAhERP8DVlA4ICYAAABwAQCdASoFAAIAB0CWJaACdAFA"
    "AAD+6DixhNJbd/uD9QfxA2AAAA=="
)


SHOT = png(40, 30)
