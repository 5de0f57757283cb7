"""The command line as plain data: commands with their flags and arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import typer
from typer.core import TyperArgument, TyperOption
from typer.main import get_command


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One flag, or a positional argument if it has no `flags`."""

    name: str
    flags: tuple[str, ...] = ()
    takes_value: bool = True
    is_repeatable: bool = False
    is_path: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandNode:
    """One command, or a group if it has `commands`; parameters are in declaration order."""

    help: str = ""
    parameters: tuple[Parameter, ...] = ()
    commands: Mapping[str, "CommandNode"] = field(default_factory=dict)

    @property
    def flags(self) -> Mapping[str, Parameter]:
        """Every spelling of a flag with its parameter."""
        return {flag: parameter for parameter in self.parameters for flag in parameter.flags}

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        """The positional parameters."""
        return tuple(parameter for parameter in self.parameters if not parameter.flags)


_HELP = Parameter(name="help", flags=("-h", "--help"), takes_value=False, help="Show help and exit.")


def build_tree(program: typer.Typer) -> CommandNode:
    """Return the command tree; commands that are not loaded have no parameters."""
    return _build_command(get_command(program))


def _build_command(command: object) -> CommandNode:
    subcommands = getattr(command, "commands", {})
    help_text = getattr(command, "short_help", "") or getattr(command, "help", "") or ""
    return CommandNode(
        help=help_text.strip().partition("\n")[0],
        parameters=(*_build_parameters(getattr(command, "params", [])), _HELP),
        commands={
            name: _build_command(subcommand) for name, subcommand in subcommands.items() if not subcommand.hidden
        },
    )


def _build_parameters(declared: list[object]) -> list[Parameter]:
    return [
        _build_parameter(parameter)
        for parameter in declared
        if isinstance(parameter, TyperArgument | TyperOption) and not parameter.hidden
    ]


def _build_parameter(declared: TyperArgument | TyperOption) -> Parameter:
    is_option = isinstance(declared, TyperOption)
    spellings = [flag.strip() for flag in (*declared.opts, *declared.secondary_opts)] if is_option else []
    return Parameter(
        name=str(declared.name),
        flags=tuple(flag for flag in spellings if flag),
        takes_value=not getattr(declared, "is_flag", False),
        is_repeatable=declared.nargs == -1 or bool(getattr(declared, "multiple", False)),
        is_path="Path" in type(declared.type).__name__,
        choices=tuple(getattr(declared.type, "choices", ())),
        help=(declared.help or "").partition("\n")[0],
    )
