"""`agent exec`: run one command exactly as the agent's shell tool would."""

import asyncio
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from agent.config.load import load_settings
from agent.config.places import data_dir, os_environ
from agent.execution.person import Person
from agent.one_call import WHOLE_OUTPUT, CommandEnd, run_one
from agent.protocol.channel import Subscription
from agent.protocol.events import WarningRaised
from agent.run_scope import Place, open_scope
from agent.toolbox import Surroundings
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import SandboxError, UsageError
from cli import run_flags as flag
from cli.approvals import TerminalAnswers
from cli.one_shot import is_terminal
from cli.progress import stderr_line
from cli.run_flags import refuse_backend

# Everything behind the first word belongs to the command, dashes or not.
CONTEXT = {"ignore_unknown_options": True, "allow_interspersed_args": False}
_REFUSED = ("denied", "deferred", "blocked")
Words = Annotated[
    list[str] | None, typer.Argument(metavar="-- CMD…", help="One word is a shell line, several an argv.")
]
SkipCheck = Annotated[bool, typer.Option("--skip-check", help="Leave out the text check and approvals, not the box.")]


def command(
    words: Words = None,
    *,
    cwd: flag.Folder = None,
    add_dirs: flag.AddDirs = None,
    skip_check: SkipCheck = False,
    backend: flag.Backend = None,
    allow_net: flag.AllowNet = None,
    allow: flag.Allow = None,
    deny: flag.Deny = None,
    assignments: flag.Assignments = None,
) -> None:
    """Run one command with the agent's checks, box and limits; its exit code is the command's own."""
    if not words:
        raise UsageError("a command is missing", "write it after two dashes: agent exec -- ls -l")
    refuse_backend(backend)
    line = words[0] if len(words) == 1 else shlex.join(words)
    flags = {"backend": backend, "allow_net": allow_net, "allow": allow, "deny": deny}
    place = Place(
        data_dir=data_dir(os_environ()), is_ephemeral=True, cwd=cwd or Path.cwd(), extra_dirs=tuple(add_dirs or ())
    )
    try:
        end = asyncio.run(_run(line, place, flags, tuple(assignments or ()), is_checked=not skip_check))
    except asyncio.CancelledError as stopped:
        raise typer.Exit(exit_codes.TERMINATED) from stopped
    raise typer.Exit(_tell(end))


async def _run(
    line: str, place: Place, flags: Mapping[str, object], assignments: tuple[str, ...], *, is_checked: bool
) -> CommandEnd:
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, _stop_once, asyncio.current_task())
    environ = os_environ()
    loaded = load_settings(environ=environ, flags=flags, assignments=assignments)
    settings = replace(loaded.settings, output_trim_chars=WHOLE_OUTPUT)
    scope = open_scope(place, loaded.secrets)
    person = Person(channel=scope.channel, is_present=is_terminal(), patience_s=settings.approval_timeout_s)
    listening = asyncio.ensure_future(_listen(scope.channel.subscribe(), person))
    broken: list[SandboxError] = []
    around = Surroundings(
        settings=settings,
        environ=environ,
        secrets=loaded.secrets,
        scope=scope,
        person=person,
        is_person_present=is_terminal(),
        is_checked=is_checked,
        on_refused=lambda subject: None,
        on_broken=broken.append,
    )
    try:
        end = await run_one(line, around)
        if broken:
            raise broken[0]
        if end.output_path:
            # The scope takes its files with it; what was too long to hold is written out from its file.
            _copy(Path(end.output_path), end.total_bytes)
            end = replace(end, text="")
        return end
    finally:
        await scope.close()
        await asyncio.wait([listening])


def _stop_once(work: "asyncio.Task[CommandEnd] | None") -> None:
    # Cancelling again would cut short the tidying up.
    if work and not work.cancelling():
        work.cancel()


async def _listen(events: Subscription, person: Person) -> None:
    answers = TerminalAnswers(send=person.resolve) if is_terminal() else None
    async for envelope in events:
        if answers:
            answers.show(envelope)
        if isinstance(envelope.event, WarningRaised):
            stderr_line(f"warning: {envelope.event.message}")


def _copy(path: Path, total_bytes: int) -> None:
    with path.open("rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
        kept = file.tell()
    sys.stdout.buffer.flush()
    if kept < total_bytes:
        stderr_line(f"warning: only the first {kept} of {total_bytes} bytes of output were kept")


def _tell(end: CommandEnd) -> int:
    if end.status in _REFUSED:
        stderr_line(end.text)
        return exit_codes.APPROVAL
    if end.status == "timeout":
        stderr_line("error: stopped at the time limit (`command_timeout_s`)")
    if end.text:
        sys.stdout.buffer.write(end.text.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.buffer.flush()
    return end.exit_code
