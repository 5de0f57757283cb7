"""Check an image by decoding it, and scale it down if it is too large; needs Pillow."""

import io

import PIL.Image

from tooling.images.header import BROKEN, ImageHeader, ImageProblem

# The size to which Anthropic scales images; OpenAI uses less for the usual shapes. One size for all providers: a
# session may continue with another model.
LONG_SIDE = 1568
_FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
_QUALITIES = (90, 75, 50)
# Decoders raise various exceptions for damaged files.
_DECODING_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    LookupError,
    TypeError,
    PIL.Image.DecompressionBombError,
)


def scale_image(data: bytes, *, max_bytes: int, max_pixels: int) -> tuple[bytes, ImageHeader]:
    """Return the image, unchanged if it fits; raises ImageProblem if it cannot be decoded."""
    try:
        # The formats are listed: Pillow has dozens of decoders, and these bytes may come from anyone.
        with PIL.Image.open(io.BytesIO(data), formats=tuple(_FORMATS)) as image:
            if image.width * image.height > max_pixels:
                raise ImageProblem(BROKEN)
            media_type = _FORMATS[image.format or ""]
            if max(image.size) <= LONG_SIDE and len(data) <= max_bytes:
                image.load()
                return data, ImageHeader(media_type=media_type, width=image.width, height=image.height)
            # Lets the JPEG decoder scale while it decodes, which saves most of the memory.
            image.draft("RGB", (LONG_SIDE, LONG_SIDE))
            return _encode(_shrink(image), max_bytes, is_photo=media_type == "image/jpeg")
    except _DECODING_ERRORS as error:
        raise ImageProblem(BROKEN) from error


def _shrink(image: PIL.Image.Image) -> PIL.Image.Image:
    has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    plain = image.convert("RGBA" if has_alpha else "RGB")
    plain.thumbnail((LONG_SIDE, LONG_SIDE), PIL.Image.Resampling.LANCZOS)
    return plain


def _encode(image: PIL.Image.Image, max_bytes: int, *, is_photo: bool) -> tuple[bytes, ImageHeader]:
    """Encode a screenshot as PNG, which keeps its text sharp; a photo, or an image that would be too large, as JPEG."""
    if not is_photo:
        content = _save(image, "PNG")
        if len(content) <= max_bytes:
            return content, ImageHeader(media_type="image/png", width=image.width, height=image.height)
    opaque = image.convert("RGB")
    for quality in _QUALITIES:
        content = _save(opaque, "JPEG", quality=quality)
        if len(content) <= max_bytes:
            break
    return content, ImageHeader(media_type="image/jpeg", width=image.width, height=image.height)


def _save(image: PIL.Image.Image, form: str, **options: int) -> bytes:
    target = io.BytesIO()
    image.save(target, form, **options)
    return target.getvalue()
