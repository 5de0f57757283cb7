"""Bring an image into a form that every provider accepts, and store it in the session."""

import os
import stat
from pathlib import Path, PurePosixPath

from tooling.contract.context import ExecCtx
from tooling.contract.image import Image
from tooling.contract.result import ToolError, ToolResult
from tooling.files.blobs import BlobStore
from tooling.files.regular_file import READ_FLAGS
from tooling.files.resolve import open_to_read
from tooling.images.header import SNIFF_BYTES, ImageHeader, ImageProblem, detect_media_type, read_header

# Limits of images that are sent unchanged: 8000 pixels, and 5 MB of base64, which is a third longer.
MAX_SIDE = 8000
MAX_BYTES = 3_750_000
# Limits of images that are scaled; the number of pixels limits the memory for decoding.
MAX_FILE_BYTES = 20_000_000
MAX_PIXELS = 64_000_000
MAX_NAME_CHARS = 100
INSTALL = "pip install 'windlass[images]'"
SCALING_NEEDS = f"scaling it down needs Pillow: {INSTALL}"


def prepare_image(data: bytes) -> tuple[bytes, ImageHeader] | None:
    """Return an image ready to send, scaled down if needed; None if it is not an image. Raises ImageProblem."""
    header = read_header(data)
    if header is None:
        return None
    if len(data) > MAX_FILE_BYTES or header.width * header.height > MAX_PIXELS:
        raise too_large(header)
    try:
        from tooling.images.scale import scale_image
    except ImportError:
        if header.long_side > MAX_SIDE or len(data) > MAX_BYTES:
            raise ImageProblem(f"{too_large(header).message} to send", SCALING_NEEDS) from None
        return data, header
    return scale_image(data, max_bytes=MAX_BYTES, max_pixels=MAX_PIXELS)


def store_image(data: bytes, header: ImageHeader, name: str, blobs: Path) -> Image:
    """Store a prepared image in a session and return the reference to it. Raises OSError."""
    return Image(
        sha256=BlobStore(blobs).put(data),
        media_type=header.media_type,
        width=header.width,
        height=header.height,
        size=len(data),
        name="".join(char if char.isprintable() else "?" for char in name)[:MAX_NAME_CHARS],
    )


def keep_image(data: bytes, header: ImageHeader, name: str, ctx: ExecCtx) -> Image:
    """Store the prepared image of a tool call; raises ToolError."""
    if ctx.blobs_dir is None:
        raise ToolError(f"{name} is an image, and there is no session to keep it in.")
    try:
        return store_image(data, header, name, ctx.blobs_dir)
    except OSError as error:
        raise ToolError(f"{name} cannot be stored: {error.strerror or error}.") from error


def image_result(path: str, ctx: ExecCtx) -> ToolResult | None:
    """Return the result of reading an image file; None if the file is not an image. Raises ToolError."""
    fd, target = open_to_read(path, ctx, READ_FLAGS)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    with os.fdopen(fd, "rb") as file:
        if not detect_media_type(file.peek(SNIFF_BYTES)):
            return None
        data = file.read(MAX_FILE_BYTES + 1)
    try:
        prepared = prepare_image(data)
    except ImageProblem as problem:
        raise ToolError(f"{target.display_path} cannot be shown: {problem}.") from problem
    if prepared is None:
        return None
    image = keep_image(*prepared, PurePosixPath(target.display_path).name, ctx)
    return ToolResult(image.description, display=f"Read {path} {image.label}", images=(image,))


def too_large(header: ImageHeader) -> ImageProblem:
    """Return the problem of an image beyond all limits."""
    return ImageProblem(f"the image ({header.width}x{header.height}) is too large", "make it smaller")
