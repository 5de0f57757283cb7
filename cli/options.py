"""Flags and arguments of commands, declared without typer, which only help, completion and errors import."""

from collections.abc import Callable
from types import FunctionType
from typing import Annotated, get_args, get_origin

from tooling.contract.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """A flag with all its names."""

    names: tuple[str, ...]
    metavar: str | None = None
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A positional argument."""

    metavar: str
    help: str = ""


def option(*names: str, metavar: str | None = None, help: str = "") -> Option:
    """Declare a flag."""
    return Option(names, metavar, help)


def declared(hint: object) -> Option | Argument | None:
    """Return the declaration in an annotation, if it is one of this module."""
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((mark for mark in marks if isinstance(mark, Option | Argument)), None)


def use_typer(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with declarations for typer; the given one is unchanged."""
    import typer

    hints = dict(function.__annotations__)
    for name, hint in hints.items():
        match declared(hint):
            case Option(names, metavar, help):
                info: object = typer.Option(*names, metavar=metavar, help=help)
            case Argument(metavar=metavar, help=help):
                info = typer.Argument(metavar=metavar, help=help, show_default=False)
            case _:
                continue
        hints[name] = Annotated[get_args(hint)[0], info]
    assert isinstance(function, FunctionType)
    translated = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    translated.__kwdefaults__, translated.__doc__ = function.__kwdefaults__, function.__doc__
    translated.__annotations__, translated.__module__ = hints, function.__module__
    return translated
