"""`agent docker`: the image and the containers of `--backend docker`."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from agent.backends.docker.container import USER_LABEL, WORKSPACE_LABEL
from agent.backends.docker.engine import NO_ANSWER, START_HINT, Engine, EngineFault, find_socket
from agent.backends.docker.image_build import DEFAULT_BASE, BuiltImage, build_image
from agent.config.load import load_settings
from agent.config.user_dirs import os_environ
from agent.vocabulary.errors import SandboxError
from cli.pages.columns import Column, render_table
from cli.pages.pages import print_json, print_notice, print_table, stdout_colors, terminal_width
from cli.screen.format import shorten_path
from cli.screen.sanitize import sanitize
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import encode

app = typer.Typer(no_args_is_help=True)

T = TypeVar("T")
BUILT = "built {name} on {base}"
NO_CONTAINERS = "(no containers)"
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
BaseOption = Annotated[str, typer.Option("--from", metavar="IMAGE", help="Image to build on.")]
NameOption = Annotated[
    str | None,
    typer.Option("--image", metavar="NAME", help="Name of the new image; by default docker_image."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnContainer:
    """A container of this user, and its workspace."""

    id: str
    name: str
    state: str
    image: str
    workspace: str


@app.command("build")
def build(*, base: BaseOption = DEFAULT_BASE, name: NameOption = None, as_json: JsonOption = False) -> None:
    """Build the image that commands run in. A base from a registry is pinned to its digest."""
    image = name or load_settings(environ=os_environ()).settings.docker_image
    show = _ignore if as_json else _show_progress
    built: BuiltImage = _with_engine(lambda engine: build_image(engine, name=image, base=base, on_output=show))
    if as_json:
        print_json(encode(built))
    else:
        print_notice(BUILT.format(name=built.name, base=built.base))


@app.command("list")
def list_containers(*, as_json: JsonOption = False) -> None:
    """List your containers, one for each workspace."""
    found = _with_engine(_find_own)
    if as_json:
        print_json(encode(found))
        return
    columns = [
        Column(header="NAME", cells=[one.name for one in found], tone="accent"),
        Column(header="STATE", cells=[one.state for one in found]),
        Column(header="IMAGE", cells=[one.image for one in found], drop_priority=1),
        Column(header="WORKSPACE", cells=[shorten_path(one.workspace) for one in found], min_width=12),
    ]
    print_table(render_table(columns, terminal_width(), stdout_colors()) if found else [NO_CONTAINERS])


@app.command("rm")
def remove_containers() -> None:
    """Remove the containers that no run is using. They hold no files; the next run creates what it needs."""
    removed, total = _with_engine(_remove_unused)
    in_use = f"; {total - removed} in use" if total > removed else ""
    print_notice(f"removed: {removed}{in_use}")


async def _find_own(engine: Engine) -> list[OwnContainer]:
    found = []
    for container in await engine.list_containers({USER_LABEL: str(os.getuid())}):
        names, labels = container.get("Names"), container.get("Labels")
        name = str(names[0]).removeprefix("/") if isinstance(names, list) and names else ""
        workspace = str(labels.get(WORKSPACE_LABEL, "")) if isinstance(labels, dict) else ""
        found.append(
            OwnContainer(
                id=str(container.get("Id", "")),
                name=name,
                state=str(container.get("State", "")),
                image=str(container.get("Image", "")),
                workspace=workspace,
            )
        )
    return sorted(found, key=lambda one: (one.workspace, one.name))


async def _remove_unused(engine: Engine) -> tuple[int, int]:
    found = await _find_own(engine)
    unused = [one for one in found if one.state != "running"]
    for one in unused:
        await engine.remove_container(one.id)
    return len(unused), len(found)


def _with_engine(work: Callable[[Engine], Awaitable[T]]) -> T:
    async def run() -> T:
        engine = Engine(find_socket(os_environ()))
        try:
            await engine.connect()
            return await work(engine)
        except EngineFault as fault:
            raise SandboxError(NO_ANSWER.format(socket=engine.socket, fault=fault), hint=START_HINT) from fault
        finally:
            await engine.close()

    return asyncio.run(run())


def _show_progress(text: str) -> None:
    sys.stderr.write(sanitize(text))
    sys.stderr.flush()


def _ignore(text: str) -> None:
    """Show nothing."""
