"""The result of a tool call: text for the model, and optionally another for the user."""

from dataclasses import field
from typing import Literal, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.image import Image

CallStatus: TypeAlias = Literal["ok", "error", "denied", "deferred", "blocked", "timeout", "cancelled"]

OK, TOOL_RAISED, BAD_ARGUMENTS, TIMED_OUT, REFUSED, UNKNOWN_TOOL, CANCELLED = 0, 1, 2, 124, 126, 127, 130


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file that a call changed, with line counts and a unified diff.

    `before` and `after` are hashes of the full content (None: no such file); `mode` is the file mode before the change,
    `after_mode` the one after it if the change was detected rather than made. The content of a link is its target,
    that of a folder is empty.
    """

    path: str
    status: Literal["added", "modified", "deleted"]
    added_lines: int = 0
    deleted_lines: int = 0
    diff: str = ""
    before: str | None = None
    after: str | None = None
    mode: int | None = None
    kind: Literal["file", "link", "folder"] = "file"
    after_mode: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskItem:
    """One item of the agent's own to-do list."""

    id: str
    content: str
    status: str = "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMeta:
    """Facts about a call that are neither for the model nor for the screen.

    `total_bytes` is the full size of a command's output, `dropped_bytes` the part that was never decoded. `output_path`
    names the file with the full output; `full_text` still has to be masked and written there. `tasks` is the to-do list
    after a change. `cost_usd` is the price that an external service charges for the call. `allowed_by` names the rule
    or mode that allowed a call without asking.
    """

    status: CallStatus = "ok"
    rule: str = ""
    output_path: str | None = None
    full_text: str | None = None
    total_bytes: int | None = None
    dropped_bytes: int = 0
    tasks: tuple[TaskItem, ...] | None = None
    changes: tuple[FileChange, ...] = ()
    artifacts: tuple[str, ...] = ()
    cost_usd: float = 0.0
    allowed_by: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`content` is exactly what the model reads; `display`, if set, is shown to the user instead.

    `images` are additional images for the model.
    """

    content: str
    exit_code: int = 0
    display: str | None = None
    meta: ToolMeta = field(default_factory=ToolMeta)
    images: tuple[Image, ...] = ()

    @property
    def is_ok(self) -> bool:
        """Return whether the call succeeded."""
        return self.meta.status == "ok"


def error_result(
    content: str,
    *,
    exit_code: int = TOOL_RAISED,
    status: CallStatus = "error",
    rule: str = "",
    display: str | None = None,
) -> ToolResult:
    """Build a failed result; `content` tells the model in one sentence what went wrong and what to try."""
    return ToolResult(content, exit_code, display, ToolMeta(status=status, rule=rule))


class ToolError(Exception):
    """A failure of a tool, in one sentence for the model; the invoker converts it to a result.

    `for_model` replaces the sentence if it contains foreign words, which the model must get in a tag.
    """

    def __init__(
        self, message: str, *, status: CallStatus = "error", exit_code: int = TOOL_RAISED, for_model: str = ""
    ) -> None:
        super().__init__(message)
        self.for_model = for_model or message
        self.status = status
        self.exit_code = exit_code
