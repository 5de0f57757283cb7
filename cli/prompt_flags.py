"""The flags that `agent` itself has in common with `agent run`; all of it loads for `agent --help`."""

from pathlib import Path
from typing import Annotated, get_args

import typer

_APPROVAL_MODE = (
    "When to ask for approval: ask (commands and edits), auto-edit (commands only), never (deny instead), "
    "yolo (allow instead), review (the reviewer model answers if it can) or plan (change nothing, only look around)."
)
_PLANNING = "When to plan: auto (the model hands out steps if that pays), always (before every task) or never."

Folder = Annotated[Path | None, typer.Option("-C", "--cd", metavar="DIR", help="Work in this folder.")]
Backend = Annotated[
    str | None, typer.Option("--backend", metavar="BACKEND", help="Where commands run: sandbox or host.")
]
AllowNet = Annotated[
    list[str] | None,
    typer.Option("--allow-net", metavar="HOST", help="Let commands connect to this host (repeatable)."),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="MODEL", help="Model to use: PROVIDER/NAME or script:FILE.")
]
Reasoning = Annotated[
    str | None,
    typer.Option(
        "--reasoning", metavar="LEVEL", help="How much models reason before they answer: off, low, medium or high."
    ),
]
Profile = Annotated[
    str | None, typer.Option("--profile", metavar="NAME", help="Use this profile from your settings file.")
]
Planning = Annotated[str | None, typer.Option("--planning", metavar="WHEN", help=_PLANNING)]
MaxBudget = Annotated[
    float | None, typer.Option("--max-budget-usd", metavar="USD", help="Maximum cost of the run in US dollars.")
]
Mode = Annotated[str | None, typer.Option("--approval-mode", metavar="MODE", help=_APPROVAL_MODE)]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="PREFIX", help="Run commands that start like this without asking (repeatable)."),
]
Deny = Annotated[
    list[str] | None,
    typer.Option("--deny", metavar="PREFIX", help="Never run commands that start like this (repeatable)."),
]

Version = Annotated[bool, typer.Option("--version", help="Show the version and exit.")]
Install = Annotated[
    str | None,
    typer.Option("--install-completion", metavar="[SHELL]", help="Install tab completion for bash, zsh or fish."),
]
Show = Annotated[str | None, typer.Option("--show-completion", metavar="[SHELL]", help="Print the completion script.")]
Last = Annotated[bool, typer.Option("-c", "--continue", help="Open the last session of the current folder.")]
OpenSession = Annotated[str | None, typer.Option("-r", "--resume", metavar="SESSION", help="Open this session.")]

_WITH_VALUE = (
    Folder, Backend, AllowNet, Model, Reasoning, Profile, Planning, MaxBudget, Mode, Allow, Deny, Install, Show,
    OpenSession,
)  # fmt: skip
# The flags of `agent` itself that take the next word. In an annotation the first name is where a default would be.
VALUE_FLAGS = frozenset(
    name for hint in _WITH_VALUE for name in (get_args(hint)[1].default, *get_args(hint)[1].param_decls)
)
