"""Image support of models, and images in requests."""

import base64
from collections.abc import Callable
from dataclasses import replace

from agent.config.settings import Settings
from agent.model.port import ModelRequest
from agent.model.prices import PriceTable
from agent.vocabulary.errors import InputError
from agent.vocabulary.message import Message
from tooling.contract.image import Image

CHOOSE_ANOTHER = (
    "choose one that can, for example anthropic/claude-sonnet-4-5 or openai/gpt-4.1; "
    "if it can, say so with `--set vision=yes`"
)
NOT_SEEN = "this model cannot see images"
NOT_STORED = "it is no longer stored"


def cannot_see(model: str) -> str:
    return f"{model} cannot see images"


class Vision:
    """Adds images to requests; a model without vision gets a line of text for each."""

    def __init__(self, settings: Settings, prices: PriceTable, read: Callable[[str], bytes | None]) -> None:
        self._setting = settings.vision
        self._prices = prices
        self._read = read

    def can_see(self, model: str) -> bool:
        """Return whether images are sent to a model: unknown ones get them."""
        return self._setting != "no" and (self._setting == "yes" or self._prices.can_see(model) is not False)

    def require(self, model: str) -> None:
        """Raise InputError if a model does not accept images."""
        if not self.can_see(model):
            raise InputError(cannot_see(model), CHOOSE_ANOTHER)

    def fill_in(self, request: ModelRequest) -> ModelRequest:
        """Return the request with the bytes of its images, or with text instead."""
        images = {image.sha256: image for message in request.messages for image in message.images}
        if not images:
            return request
        data: dict[str, str] = {}
        if self.can_see(request.model):
            stored = {name: content for name in images if (content := self._read(name)) is not None}
            data = {name: base64.b64encode(content).decode() for name, content in stored.items()}
            why = NOT_STORED
        else:
            why = NOT_SEEN
        messages = tuple(_without_missing(message, data, why) for message in request.messages)
        return replace(request, messages=messages, image_data=data)


def _without_missing(message: Message, data: dict[str, str], why: str) -> Message:
    missing = [image for image in message.images if image.sha256 not in data]
    if not missing:
        return message
    lines = "\n".join(_missing_line(image, why) for image in missing)
    return replace(
        message,
        content=f"{message.content}\n{lines}" if message.content else lines,
        images=tuple(image for image in message.images if image.sha256 in data),
    )


def _missing_line(image: Image, why: str) -> str:
    return f"{image.label[:-1]}: {why}]"
