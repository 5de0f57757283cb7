"""Bodies are decompressed up to a limit and never beyond it."""

import gzip
import zlib

import pytest

from tooling.web.http.body import ENDED_EARLY, BodyReader
from tooling.web.http.messages import WebFault

TEXT = b"some words that are not all the same, 0123456789. " * 400


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


def read(encoding: str, data: bytes, *, limit: int = 1_000_000, size: int = 100) -> BodyReader:
    reader = BodyReader(encoding, limit)
    for at in range(0, len(data), size):
        if not reader.feed(data[at : at + size]):
            break
    reader.finish()
    return reader


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", gzip.compress(TEXT)),
        ("x-gzip", gzip.compress(TEXT)),
        ("GZIP", gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:])),
        ("gzip", gzip.compress(TEXT) + b"\0" * 300),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", raw_deflate(TEXT)),
        ("deflate", zlib.compress(TEXT) + b"more"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_every_encoding_is_decompressed(encoding: str, data: bytes, size: int) -> None:
    reader = read(encoding, data, size=size)
    assert reader.data == TEXT
    assert not reader.is_truncated


@pytest.mark.parametrize("size", [1, 64_000])
def test_a_bomb_stops_at_the_limit_and_is_detected(size: int) -> None:
    bomb = gzip.compress(b"\0" * 30_000_000)
    reader = read("gzip", bomb, limit=1_000_000, size=size)
    assert len(reader.data) == 1_000_000
    assert reader.is_truncated
    assert reader.is_bomb


def test_a_long_page_is_truncated_and_not_a_bomb() -> None:
    page = "".join(f"<p>paragraph {n} of many {n * 7919 % 1000003}</p>" for n in range(20_000)).encode()
    reader = read("gzip", gzip.compress(page), limit=100_000)
    assert reader.data == page[:100_000]
    assert (reader.is_truncated, reader.is_bomb) == (True, False)


def test_a_page_of_exactly_the_limit_is_complete() -> None:
    assert read("gzip", gzip.compress(TEXT), limit=len(TEXT)).is_truncated is False
    assert read("", TEXT, limit=len(TEXT)).is_truncated is False
    assert read("", TEXT, limit=len(TEXT) - 1).is_truncated is True


def test_endless_empty_members_are_truncated() -> None:
    reader = read("gzip", gzip.compress(b"") * 10_000, limit=100_000)
    assert reader.is_truncated


def test_invalid_compression_is_a_fault() -> None:
    for encoding, data in (
        ("gzip", b"abc"),
        ("gzip", gzip.compress(TEXT)[:-8] + b"x" * 8),
        ("deflate", b"\xff\xff\xff"),
        ("br", b"x"),
    ):
        with pytest.raises(WebFault):
            read(encoding, data)


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", gzip.compress(TEXT)[:-1]),
        ("gzip", gzip.compress(TEXT)[:60]),
        ("gzip", gzip.compress(TEXT)[:1]),
        ("gzip", gzip.compress(TEXT) + gzip.compress(TEXT)[:60]),
        ("deflate", zlib.compress(TEXT)[:-1]),
        ("deflate", raw_deflate(TEXT)[:60]),
        ("deflate", zlib.compress(TEXT)[:1]),
    ],
    ids=range(7),
)
@pytest.mark.parametrize("size", [1, 100_000])
def test_an_incomplete_compressed_body_is_a_fault(encoding: str, data: bytes, size: int) -> None:
    with pytest.raises(WebFault, match=ENDED_EARLY) as raised:
        read(encoding, data, size=size)
    assert raised.value.kind == "broken"


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_an_empty_body_is_complete(encoding: str) -> None:
    assert read(encoding, b"").data == b""
