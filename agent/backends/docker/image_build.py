"""Builds the image of `--backend docker` from the Dockerfile of the package."""

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

from agent.backends.docker.engine import Engine, EngineFault
from agent.vocabulary.errors import SandboxError
from tooling.contract.fast_dataclass import dataclass

IMAGE_FOLDER = Path(__file__).with_name("image")
DEFAULT_BASE = "debian:bookworm-slim"
BASE_LABEL = "windlass.base"
NO_REGISTRY = "no registry has the image {base}, or none can be reached: {reason}"
FROM_HINT = "--from IMAGE builds on an image that the engine already has (`docker images` lists them)"
NOT_BUILT = "the image was not built: {reason}"
NOT_BUILT_HINT = "the base must be Debian or have bash, git and python3; --from IMAGE chooses another"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltImage:
    """A built image: its name and id, and the exact base image."""

    name: str
    id: str
    base: str


async def build_image(engine: Engine, *, name: str, base: str, on_output: Callable[[str], None]) -> BuiltImage:
    """Build the image from a base image. Raises SandboxError with a hint.

    A base from a registry is pinned to its current digest.
    """
    exact = await _pin(engine, base)
    params = {"t": name, "buildargs": json.dumps({"BASE": exact}), "labels": json.dumps({BASE_LABEL: exact}), "rm": "1"}
    try:
        async for progress in engine.stream("POST", "/build", params=params, content=_pack(IMAGE_FOLDER)):
            if "error" in progress:
                raise EngineFault(str(progress["error"]))
            on_output(str(progress.get("stream") or ""))
    except EngineFault as fault:
        raise SandboxError(NOT_BUILT.format(reason=fault), hint=NOT_BUILT_HINT) from fault
    return BuiltImage(name=name, id=str((await engine.find_image(name)).get("Id", "")), base=exact)


async def _pin(engine: Engine, base: str) -> str:
    """Return the base with its digest, or unchanged if the engine already has it."""
    if "@" in base:
        return base
    path = quote(base, safe="/:@")
    try:
        await engine.get(f"/images/{path}/json")
    except EngineFault as missing:
        if missing.status != HTTPStatus.NOT_FOUND:
            raise SandboxError(NOT_BUILT.format(reason=missing), hint=FROM_HINT) from missing
    else:
        return base
    try:
        found = await engine.get(f"/distribution/{path}/json")
    except EngineFault as fault:
        raise SandboxError(NO_REGISTRY.format(base=base, reason=fault), hint=FROM_HINT) from fault
    descriptor = found.get("Descriptor")
    digest = descriptor.get("digest") if isinstance(descriptor, Mapping) else None
    return f"{_without_tag(base)}@{digest}" if digest else base


def _without_tag(name: str) -> str:
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"


def _pack(folder: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, arcname=path.name)
    return packed.getvalue()
