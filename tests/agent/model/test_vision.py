"""Which models see, and what a request carries of its images."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent.config.settings import Settings
from agent.model.budget import TOKENS_PER_IMAGE, estimate_tokens
from agent.model.fault_mapping import fault_from_status
from agent.model.port import ModelRequest
from agent.model.prices import PriceTable
from agent.model.vision import CHOOSE_ANOTHER, NOT_SEEN, NOT_STORED, Vision, cannot_see
from agent.vocabulary.errors import InputError
from agent.vocabulary.message import Message
from tooling.contract.image import Image
from tooling.files.blobs import BlobStore


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path)


def vision(blobs: BlobStore, **settings: str) -> Vision:
    return Vision(replace(Settings(), **settings), PriceTable(), blobs.read)  # type: ignore[arg-type]


def ask(model: str, *images: Image) -> ModelRequest:
    return ModelRequest(model=model, messages=(Message(role="user", content="look", images=images),))


def stored(blobs: BlobStore, data: bytes = b"AA", name: str = "shot.png") -> Image:
    return Image(sha256=blobs.put(data), media_type="image/png", width=4, height=3, size=len(data), name=name)


@pytest.mark.parametrize(
    "model",
    [
        "openai/gpt-4o",
        "gpt-5",
        "anthropic/claude-sonnet-4-5",
        "openrouter/openai/gpt-4o",
        "openai/ft:gpt-4o-2024-11-20",
        "ollama/llava-next",
        "my-own-model",
        "script:a.jsonl",
        "replay",
    ],
)
def test_models_that_see_and_unknown_ones_get_images(model: str, blobs: BlobStore) -> None:
    assert vision(blobs).can_see(model)


@pytest.mark.parametrize(
    "model",
    ["openai/gpt-3.5-turbo", "o3-mini", "groq/openai/gpt-oss-120b", "ollama/llama3", "mistral/codestral-latest"],
)
def test_models_known_to_be_blind_are_refused(model: str, blobs: BlobStore) -> None:
    with pytest.raises(InputError) as raised:
        vision(blobs).require(model)
    assert (raised.value.message, raised.value.hint) == (cannot_see(model), CHOOSE_ANOTHER)


def test_the_setting_overrides_what_is_known(blobs: BlobStore) -> None:
    assert vision(blobs, vision="yes").can_see("openai/gpt-3.5-turbo")
    assert not vision(blobs, vision="no").can_see("openai/gpt-4o")


def test_a_request_gets_the_bytes_of_its_images(blobs: BlobStore) -> None:
    image = stored(blobs)
    request = ask("openai/gpt-4o", image)
    filled = vision(blobs).fill_in(request)
    assert (filled.messages, filled.image_data) == (request.messages, {image.sha256: "QUE="})


def test_a_model_that_cannot_see_reads_that_there_was_an_image(blobs: BlobStore) -> None:
    filled = vision(blobs).fill_in(ask("openai/o3-mini", stored(blobs)))
    assert filled.messages == (Message(role="user", content=f"look\n[image shot.png 4x3: {NOT_SEEN}]"),)


def test_an_image_that_is_gone_is_a_line_of_text_and_no_failure(blobs: BlobStore, tmp_path: Path) -> None:
    kept, gone = stored(blobs), stored(blobs, b"BB", "plot.png")
    (tmp_path / gone.sha256).unlink()
    (message,) = vision(blobs).fill_in(ask("gpt-4o", kept, gone)).messages
    assert message == Message(role="user", content=f"look\n[image plot.png 4x3: {NOT_STORED}]", images=(kept,))


def test_an_image_counts_by_a_constant_not_by_its_bytes(blobs: BlobStore) -> None:
    plain, with_image = ask("m"), vision(blobs).fill_in(ask("m", stored(blobs, bytes(100_000))))
    assert estimate_tokens(with_image) - estimate_tokens(plain) == TOKENS_PER_IMAGE


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
        (400, "This model does not support image input."),
        (404, "No endpoints found that support image input"),
        (400, "Invalid content type. image_url is only supported by certain models: vision is not supported"),
    ],
)
def test_a_providers_refusal_of_images_says_what_to_do(status: int, text: str) -> None:
    fault = fault_from_status(status, text.encode(), {})
    assert (fault.kind, fault.policy.exit_code) == ("blind", 42)
    assert "vision=no" in fault.policy.hint
