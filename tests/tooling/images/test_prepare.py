"""Images are recognized by their bytes, checked, and scaled to what providers accept."""

import io
import sys
from pathlib import Path

import PIL.Image
import pytest

from tests.tooling.images.sample_images import GIF, JPEG, WEBP_EXTENDED, WEBP_LOSSLESS, WEBP_LOSSY, png
from tooling.files.blobs import BlobStore
from tooling.images.header import BROKEN, ImageHeader, ImageProblem, read_header
from tooling.images.prepare import MAX_BYTES, MAX_SIDE, SCALING_NEEDS, prepare_image, store_image
from tooling.images.scale import LONG_SIDE


@pytest.fixture
def without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tooling.images.scale", raising=False)
    monkeypatch.setitem(sys.modules, "PIL", None)


@pytest.mark.parametrize(
    ("data", "media_type", "size"),
    [
        (png(40, 30), "image/png", (40, 30)),
        (GIF, "image/gif", (1, 1)),
        (JPEG, "image/jpeg", (5, 2)),
        (WEBP_LOSSY, "image/webp", (5, 2)),
        (WEBP_LOSSLESS, "image/webp", (5, 2)),
        (WEBP_EXTENDED, "image/webp", (5, 2)),
    ],
)
def test_every_format_is_recognized_with_its_dimensions_and_sent_unchanged(
    data: bytes, media_type: str, size: tuple[int, int]
) -> None:
    header = ImageHeader(media_type=media_type, width=size[0], height=size[1])
    assert read_header(data) == header
    assert prepare_image(data) == (data, header)


@pytest.mark.parametrize("data", [b"", b"hello", b"BM6\0", b"%PDF-1.7", b"RIFF\0\0\0\0WAVE", b"<svg/>", b"GIF8"])
def test_anything_else_is_not_an_image(data: bytes) -> None:
    assert prepare_image(data) is None


@pytest.mark.parametrize("data", [png(40, 30), GIF, JPEG, WEBP_LOSSY, WEBP_LOSSLESS, WEBP_EXTENDED])
def test_a_truncated_image_is_a_problem_with_and_without_pillow(data: bytes, without_pillow: None) -> None:
    for end in (12, 20, len(data) - 6):
        with pytest.raises(ImageProblem, match=BROKEN):
            prepare_image(data[:end])


def test_a_damaged_image_is_found_by_decoding_it() -> None:
    data = bytearray(png(40, 30))
    data[45:60] = bytes(15)
    with pytest.raises(ImageProblem, match=BROKEN):
        prepare_image(bytes(data))


def test_a_large_screenshot_is_scaled_and_stays_a_png() -> None:
    prepared = prepare_image(png(3136, 1000))
    assert prepared is not None
    data, header = prepared
    assert header == ImageHeader(media_type="image/png", width=LONG_SIDE, height=500)
    assert read_header(data) == header


def test_a_large_photo_stays_a_jpeg() -> None:
    target = io.BytesIO()
    PIL.Image.new("RGB", (1000, 4000), (9, 99, 199)).save(target, "JPEG")
    prepared = prepare_image(target.getvalue())
    assert prepared is not None
    assert prepared[1] == ImageHeader(media_type="image/jpeg", width=392, height=LONG_SIDE)


def test_an_image_of_too_many_bytes_becomes_a_jpeg_that_fits() -> None:
    target = io.BytesIO()
    PIL.Image.effect_noise((1500, 1500), 200).convert("RGB").save(target, "PNG", compress_level=0)
    assert len(target.getvalue()) > MAX_BYTES
    prepared = prepare_image(target.getvalue())
    assert prepared is not None
    assert (len(prepared[0]) <= MAX_BYTES, prepared[1].width) == (True, 1500)


def test_the_same_image_is_always_scaled_to_the_same_bytes() -> None:
    assert prepare_image(png(2000, 10)) == prepare_image(png(2000, 10))


def test_transparency_survives_scaling() -> None:
    target = io.BytesIO()
    PIL.Image.new("RGBA", (2000, 2000), (1, 2, 3, 0)).save(target, "PNG")
    prepared = prepare_image(target.getvalue())
    assert prepared is not None
    assert PIL.Image.open(io.BytesIO(prepared[0])).mode == "RGBA"


def test_a_decompression_bomb_is_refused_by_its_header() -> None:
    bomb = png(1, 1).replace((1).to_bytes(4) + (1).to_bytes(4), (60_000).to_bytes(4) + (60_000).to_bytes(4))
    with pytest.raises(ImageProblem, match=r"60000x60000.* too large"):
        prepare_image(bomb)


def test_without_pillow_an_image_within_the_limits_is_sent_unchanged(without_pillow: None) -> None:
    data = png(3000, 10)
    assert prepare_image(data) == (data, ImageHeader(media_type="image/png", width=3000, height=10))


@pytest.mark.parametrize("data", [png(MAX_SIDE + 1, 1), png(4, 3) + bytes(MAX_BYTES)])
def test_without_pillow_a_larger_one_is_an_error_with_the_line_that_installs_it(
    data: bytes, without_pillow: None
) -> None:
    with pytest.raises(ImageProblem) as raised:
        prepare_image(data)
    assert raised.value.hint == SCALING_NEEDS
    assert "pip install 'windlass[images]'" in SCALING_NEEDS


def test_a_stored_image_is_found_by_its_hash(tmp_path: Path) -> None:
    data = png(40, 30)
    prepared = prepare_image(data)
    assert prepared is not None
    image = store_image(*prepared, "shot.png", tmp_path)
    assert (image.label, image.description) == ("[image shot.png 40x30]", f"image/png 40x30, {len(data)} bytes")
    assert BlobStore(tmp_path).read(image.sha256) == data
