"""The worker process that parses documents under its own resource limits; started by the worker pool.

A frame is the length of the head (four bytes), the head (JSON with the size of the body) and the body.
"""

import dataclasses
import json
import os
import resource
import sys
from collections.abc import Mapping
from typing import BinaryIO, get_args

from tooling.contract.json_codec import encode
from tooling.images.header import ImageProblem
from tooling.images.prepare import prepare_image
from tooling.web.documents.read_document import ParsedDocument, RawDocument, ReadMode, read_document
from tooling.web.passages import find_passages

MAX_MEMORY_BYTES = 1_500_000_000


def main() -> None:
    """Process jobs until stdin is closed."""
    _set_rlimits()
    source = sys.stdin.buffer
    # Redirect stdout to stderr: output printed by a library must not end up in the protocol.
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (frame := read_frame(source)) is not None:
        head, body = frame
        target.write(_handle(head, body))
        target.flush()


def _handle(head: Mapping[str, object], body: bytes) -> bytes:
    match head["job"]:
        case "passages":
            return _handle_passages(head, body)
        case "image":
            return _handle_image(body)
        case _:
            return _handle_read(_raw_document(head, body))


def encode_frame(head: object, body: bytes) -> bytes:
    """Encode a head and a body as one frame."""
    fields = dict(head) if isinstance(head, dict) else {}
    encoded = json.dumps({**fields, "size": len(body)}).encode()
    return len(encoded).to_bytes(4, "big") + encoded + body


def read_frame(source: BinaryIO) -> tuple[dict[str, object], bytes] | None:
    """Return the head and the body of the next frame, or None at the end."""
    length = source.read(4)
    if len(length) < 4:
        return None
    head = json.loads(source.read(int.from_bytes(length, "big")))
    return head, source.read(head["size"])


def _raw_document(head: Mapping[str, object], body: bytes) -> RawDocument:
    mode: ReadMode = next((mode for mode in get_args(ReadMode) if mode == head["mode"]), "auto")
    return RawDocument(
        body=body,
        content_type=str(head["content_type"]),
        url=str(head["url"]),
        is_truncated=bool(head["is_truncated"]),
        mode=mode,
    )


def _handle_read(raw: RawDocument) -> bytes:
    try:
        document = read_document(raw)
    except (MemoryError, RecursionError) as error:
        document = ParsedDocument(problem=f"it is too large to be read ({type(error).__name__})")
    return encode_frame(encode(dataclasses.replace(document, text="")), document.text.encode("utf-8", "replace"))


def _handle_passages(head: Mapping[str, object], body: bytes) -> bytes:
    max_chars = int(str(head["max_chars"]))
    found = find_passages(str(head["query"]), body.decode("utf-8", "replace"), max_chars=max_chars)
    return encode_frame({"passages": encode(found)}, b"")


def _handle_image(body: bytes) -> bytes:
    try:
        prepared = prepare_image(body)
    except (ImageProblem, MemoryError) as error:
        return encode_frame({"problem": str(error) or "it is too large to be decoded"}, b"")
    assert prepared is not None
    data, header = prepared
    return encode_frame(encode(header), data)


def _set_rlimits() -> None:
    for kind, limit in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


if __name__ == "__main__":
    main()
