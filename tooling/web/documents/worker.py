"""The process that reads pages: bytes in, text out, with limits of its own; started by the reading room.

A frame is the length of its head (four bytes), the head (JSON with the size of the rest), and the rest.
"""

import dataclasses
import json
import os
import resource
import sys
from collections.abc import Mapping
from typing import BinaryIO, get_args

from tooling.contract.json_codec import encode
from tooling.web.documents.read_document import ParsedDocument, RawDocument, ReadMode, read_document
from tooling.web.passages import find_passages

MAX_MEMORY_BYTES = 1_500_000_000


def main() -> None:
    """Read answers until nobody sends any more."""
    _set_rlimits()
    source = sys.stdin.buffer
    # Whatever a library prints must not be taken for a reply.
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (frame := read_frame(source)) is not None:
        head, body = frame
        target.write(
            _handle_passages(head, body) if head["job"] == "passages" else _handle_read(_raw_document(head, body))
        )
        target.flush()


def encode_frame(head: object, body: bytes) -> bytes:
    """Return a frame ready to be sent."""
    fields = dict(head) if isinstance(head, dict) else {}
    packed = json.dumps({**fields, "size": len(body)}).encode()
    return len(packed).to_bytes(4, "big") + packed + body


def read_frame(source: BinaryIO) -> tuple[dict[str, object], bytes] | None:
    """Return the head and the rest of the next frame, or None at the end."""
    length = source.read(4)
    if len(length) < 4:
        return None
    head = json.loads(source.read(int.from_bytes(length, "big")))
    return head, source.read(head["size"])


def _raw_document(head: Mapping[str, object], body: bytes) -> RawDocument:
    way: ReadMode = next((way for way in get_args(ReadMode) if way == head["way"]), "auto")
    return RawDocument(
        body=body,
        content_type=str(head["content_type"]),
        url=str(head["url"]),
        is_cut=bool(head["is_cut"]),
        mode=way,
    )


def _handle_read(answer: RawDocument) -> bytes:
    try:
        reading = read_document(answer)
    except (MemoryError, RecursionError) as error:
        reading = ParsedDocument(problem=f"it is too large to be read ({type(error).__name__})")
    return encode_frame(encode(dataclasses.replace(reading, text="")), reading.text.encode("utf-8", "replace"))


def _handle_passages(head: Mapping[str, object], body: bytes) -> bytes:
    most_chars = int(str(head["most_chars"]))
    found = find_passages(str(head["query"]), body.decode("utf-8", "replace"), most_chars=most_chars)
    return encode_frame({"passages": encode(found)}, b"")


def _set_rlimits() -> None:
    for kind, most in (
        (resource.RLIMIT_AS, MAX_MEMORY_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    main()
