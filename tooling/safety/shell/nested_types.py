"""What one command runs besides itself, as values."""

from dataclasses import field

from tooling.contract.fast_dataclass import dataclass
from tooling.safety.shell.command import Code


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellText:
    """A text that a shell will read: the same one, or another with its own `$1 $2 …`."""

    text: str
    positional: tuple[str, ...] = ()
    is_same_shell: bool = False
    is_deferred: bool = False


@dataclass(slots=True)
class NestedCode:
    """Everything that a command runs besides itself."""

    argvs: list[tuple[str, ...]] = field(default_factory=list)
    texts: list[ShellText] = field(default_factory=list)
    codes: list[Code] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)
    script: str = ""
    language: str = ""
    reads_code: bool = False
