"""The context of a tool call: identity, folders, rights and cancellation."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol
from uuid import UUID

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.files import Files, NoFiles


class StartHandler(Protocol):
    """Called when a call is about to run."""

    async def __call__(self, *, only_reads: bool = False) -> None:
        """Wait until the call may run; a read-only call need not be recorded first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecCtx:
    """Identity, scope and cancellation of one call; nothing here is an argument of the tool.

    Tools access nothing in `own_dirs`, the folders of this program, and write no start-up files in `homes`, even
    inside the workspace. `files` reads and writes the workspace. `on_start` is awaited when the call is permitted and
    about to run: from then on it may have side effects. `on_output` receives output of a running call.
    Without `may_ask` the call is refused instead of asking for approval. With `read_only` it may change nothing.
    `tool_id` is the model's id of the call, which providers reuse, `call_id` a unique one. `effect_key` is the
    idempotency key of a call with an effect outside the workspace; its requests carry it. `chat_type` is
    "group" on shared machines, such as CI. `traceparent` is
    passed to the commands of a traced call.
    """

    user_id: UUID
    task_id: UUID
    working_dir: Path
    cancel_check: Callable[[], bool] | None = None
    on_start: StartHandler | None = None
    on_output: Callable[[bytes], None] | None = None
    session_id: str = ""
    step_id: str = ""
    attempt: int = 1
    call_id: str = ""
    tool_id: str = ""
    extra_dirs: tuple[Path, ...] = ()
    # Readable folders, and variables of commands.
    read_dirs: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    own_dirs: tuple[Path, ...] = ()
    homes: tuple[Path, ...] = ()
    outputs_dir: Path | None = None
    # Folder of the scripts of the user's skills; no command can change it.
    skill_dirs: tuple[Path, ...] = ()
    blobs_dir: Path | None = None
    allowed_tools: tuple[str, ...] | None = None
    chat_type: str = "private"
    may_ask: bool = True
    effect_key: str = ""
    read_only: bool = False
    traceparent: str = ""
    files: Files = field(default_factory=NoFiles, compare=False, repr=False)

    def may_use(self, tool: str) -> bool:
        """Return whether the call may use a tool."""
        return self.allowed_tools is None or tool in self.allowed_tools
