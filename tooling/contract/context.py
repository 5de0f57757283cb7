"""The context of a tool call: identity, folders, rights and cancellation."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from uuid import UUID

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.files import Files, NoFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecCtx:
    """Identity, scope and cancellation of one call; nothing here is an argument of the tool.

    Tools use nothing in `own_dirs`, the folders of this program, and write no start-up files in `homes`, even if these
    are in the workspace. `files` reads and writes the workspace. `on_start` is awaited when the call is permitted and
    about to run: from then on it may have side effects. `on_output` gets output of a call that is still running.
    Without `may_ask` the call is refused instead of asking for approval. With `read_only` it may change nothing.
    `tool_id` is the model's id of the call, which providers reuse, `call_id` a unique one. `effect_key` is the
    idempotency key of a call with an effect outside the workspace; requests that it makes carry it. `chat_type` is
    "group" where others use the place, too, such as CI. `traceparent` is
    handed to the commands of a call that is traced.
    """

    user_id: UUID
    task_id: UUID
    working_dir: Path
    cancel_check: Callable[[], bool] | None = None
    on_start: Callable[[], Awaitable[None]] | None = None
    on_output: Callable[[bytes], None] | None = None
    session_id: str = ""
    step_id: str = ""
    attempt: int = 1
    call_id: str = ""
    tool_id: str = ""
    extra_dirs: tuple[Path, ...] = ()
    # Folders that may be read, and variables that commands get.
    read_dirs: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    own_dirs: tuple[Path, ...] = ()
    homes: tuple[Path, ...] = ()
    outputs_dir: Path | None = None
    # Where the scripts of the user's skills are; no command can change them.
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
