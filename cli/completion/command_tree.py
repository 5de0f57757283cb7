"""The command line as plain values: commands, their flags and arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import typer
from typer.core import TyperArgument, TyperOption
from typer.main import get_command


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One flag, or one argument when it has no `flags`."""

    name: str
    flags: tuple[str, ...] = ()
    takes_value: bool = True
    is_repeatable: bool = False
    is_path: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandNode:
    """One command, or a group when it has `commands`; parameters in the order they are declared in."""

    help: str = ""
    parameters: tuple[Parameter, ...] = ()
    commands: Mapping[str, "CommandNode"] = field(default_factory=dict)

    @property
    def flags(self) -> Mapping[str, Parameter]:
        """Return the flags by every way they are spelled."""
        return {flag: parameter for parameter in self.parameters for flag in parameter.flags}

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """Return the parameters without a flag."""
        return tuple(parameter for parameter in self.parameters if not parameter.flags)


_HELP = Parameter(name="help", flags=("-h", "--help"), takes_value=False, help="Show help and exit.")


def build_tree(program: typer.Typer) -> CommandNode:
    """Return the whole of a command line, as far as it is loaded."""
    return _build_command(get_command(program))


def _build_command(command: object) -> CommandNode:
    below = getattr(command, "commands", {})
    described = getattr(command, "short_help", "") or getattr(command, "help", "") or ""
    return CommandNode(
        help=described.strip().partition("\n")[0],
        parameters=(*_build_parameters(getattr(command, "params", [])), _HELP),
        commands={name: _build_command(one) for name, one in below.items() if not one.hidden},
    )


def _build_parameters(declared: list[object]) -> list[Parameter]:
    return [
        _build_parameter(one) for one in declared if isinstance(one, TyperArgument | TyperOption) and not one.hidden
    ]


def _build_parameter(declared: TyperArgument | TyperOption) -> Parameter:
    is_option = isinstance(declared, TyperOption)
    spelled = [flag.strip() for flag in (*declared.opts, *declared.secondary_opts)] if is_option else []
    return Parameter(
        name=str(declared.name),
        flags=tuple(flag for flag in spelled if flag),
        takes_value=not getattr(declared, "is_flag", False),
        is_repeatable=declared.nargs == -1 or bool(getattr(declared, "multiple", False)),
        is_path="Path" in type(declared.type).__name__,
        choices=tuple(getattr(declared.type, "choices", ())),
        help=(declared.help or "").partition("\n")[0],
    )
