"""Recipes that a text first writes and then has run: makefiles and the scripts of a package."""

import json
from collections.abc import Iterator

from tooling.safety.shell.state import Made, joined

_MAKERS = frozenset({"make", "gmake", "just"})
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile", "justfile")
_PACKAGERS = frozenset({"npm", "yarn", "pnpm", "bun"})


def recipes(program: str, cwd: str, made: Made) -> Iterator[str | None]:
    """Yield the shell texts that a program finds in what was just written; None is one that nobody can see."""
    names: tuple[str, ...]
    if program in _MAKERS:
        names = _MAKEFILES
    elif program in _PACKAGERS:
        names = ("package.json",)
    else:
        return
    for name in names:
        path = joined(cwd, name)
        if path in made.files:
            content = made.files[path]
            yield from (None,) if content is None else _scripts(content) if name == "package.json" else _lines(content)


def _lines(makefile: str) -> Iterator[str]:
    for line in makefile.splitlines():
        if line.startswith(("\t", " ")):
            yield line.strip().lstrip("@-+")


def _scripts(package: str) -> Iterator[str | None]:
    try:
        scripts = json.loads(package).get("scripts", {})
    except (ValueError, AttributeError):
        yield None
        return
    yield from (script for script in (scripts.values() if isinstance(scripts, dict) else ()) if isinstance(script, str))
