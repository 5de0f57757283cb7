"""The flags that `agent` itself shares with `agent run`; all of it is loaded for `agent --help`."""

from pathlib import Path
from typing import Annotated

from cli.options import Option, declared, option

_APPROVAL_MODE = (
    "When to ask for approval: ask (commands and edits), auto-edit (commands only), never (deny instead), "
    "yolo (allow instead), review (the reviewer model answers if it can) or plan (change nothing, only look around)."
)
_PLANNING = "When to plan: auto (the model hands out steps if that pays), always (before every task) or never."

Folder = Annotated[Path | None, option("-C", "--cd", metavar="DIR", help="Work in this folder.")]
Backend = Annotated[
    str | None, option("--backend", metavar="BACKEND", help="Where commands run: sandbox, host or docker.")
]
Image = Annotated[
    str | None, option("--image", metavar="NAME", help="Image of the container that --backend docker runs commands in.")
]
AllowNet = Annotated[
    list[str] | None,
    option("--allow-net", metavar="HOST", help="Let commands connect to this host (repeatable)."),
]
Model = Annotated[str | None, option("--model", metavar="MODEL", help="Model to use: PROVIDER/NAME or script:FILE.")]
Reasoning = Annotated[
    str | None,
    option("--reasoning", metavar="LEVEL", help="How much models reason before they answer: off, low, medium or high."),
]
Profile = Annotated[str | None, option("--profile", metavar="NAME", help="Use this profile from your settings file.")]
Planning = Annotated[str | None, option("--planning", metavar="WHEN", help=_PLANNING)]
MaxBudget = Annotated[
    float | None, option("--max-budget-usd", metavar="USD", help="Maximum cost of the run in US dollars.")
]
Mode = Annotated[str | None, option("--approval-mode", metavar="MODE", help=_APPROVAL_MODE)]
Allow = Annotated[
    list[str] | None,
    option("--allow", metavar="PREFIX", help="Run commands that start like this without asking (repeatable)."),
]
Deny = Annotated[
    list[str] | None,
    option("--deny", metavar="PREFIX", help="Never run commands that start like this (repeatable)."),
]

Worktree = Annotated[
    str | None,
    option(
        "--worktree", metavar="[=NAME]", help="Work in a git worktree of its own, to be merged or discarded at the end."
    ),
]
Version = Annotated[bool, option("--version", help="Show the version and exit.")]
Install = Annotated[
    str | None,
    option("--install-completion", metavar="[SHELL]", help="Install tab completion for bash, zsh or fish."),
]
Show = Annotated[str | None, option("--show-completion", metavar="[SHELL]", help="Print the completion script.")]
Last = Annotated[bool, option("-c", "--continue", help="Open the last session of the current folder.")]
OpenSession = Annotated[str | None, option("-r", "--resume", metavar="SESSION", help="Open this session.")]

_WITH_VALUE = (
    Folder, Backend, Image, AllowNet, Model, Reasoning, Profile, Planning, MaxBudget, Mode, Allow, Deny, Install, Show,
    OpenSession,
)  # fmt: skip
# The flags of `agent` itself that take the next word.
VALUE_FLAGS = frozenset(
    name for hint in _WITH_VALUE if isinstance(mark := declared(hint), Option) for name in mark.names
)
