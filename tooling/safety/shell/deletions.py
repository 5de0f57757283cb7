"""Deletions: leftovers of builds go unasked, everything else that goes deep or wide is asked about."""

import re
from collections.abc import Iterator

from tooling.safety.shell.command import Command, display_word, is_unknown
from tooling.safety.shell.path_access import PathAccess
from tooling.safety.shell.state import SideEffects, join_path

_PROGRAMS = frozenset({"rm", "grm", "srm", "rimraf", "del-cli", "trash", "gio-trash"})
_ALWAYS_RECURSIVE = frozenset({"rimraf", "trash"})
# What builds, tests and package managers leave behind and make again.
_BUILD_ARTIFACTS = re.compile(
    r"(?:build|builds|_build|dist|out|output|outputs|target|bin|obj|node_modules|bower_components|__pycache__|__pypackages__"
    r"|\.venv|venv|\.virtualenv|env|\.tox|\.nox|\.eggs|htmlcov|coverage|\.coverage.*|\.nyc_output|\.next|\.nuxt|\.output"
    r"|\.svelte-kit|\.astro|\.parcel-cache|\.turbo|\.vite|\.angular|\.expo|\.docusaurus|storybook-static|site|_site|public/build"
    r"|\.gradle|\.kotlin|\.dart_tool|Pods|DerivedData|\.build|\.swiftpm|cmake-build-.*|CMakeFiles|CMakeCache\.txt"
    r"|\.terraform|\.serverless|\.aws-sam|cdk\.out|\.ipynb_checkpoints|\.hypothesis|\.benchmarks|\.stack-work|dist-newstyle"
    r"|_esy|elm-stuff|deps|\.elixir_ls|\.bundle|tmp|temp|\.tmp|\.temp|scratch|artifacts|test-results|test-reports|test-output"
    r"|playwright-report|reports?|logs?|generated|gen|\.cache|\.?[\w.-]*[_-]cache|\.?cache[\w-]*|[\w-]+\.egg-info|wheelhouse"
    r"|[\w*-]+\.dSYM|package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|poetry\.lock|uv\.lock|Gemfile\.lock|nohup\.out"
    r"|\.DS_Store|Thumbs\.db|core|a\.out|\.sass-cache|\.eslintcache|\.stylelintcache|\.dmypy\.json|\.metals|\.bloop"
    r"|.*\.(?:egg-info|pyc|pyo|o|obj|a|so|dylib|dll|exe|class|log|tmp|temp|bak|orig|rej|swp|swo|gcda|gcno|gcov|tsbuildinfo"
    r"|cache|pid|out|test|prof|profraw|coverage|whl|tgz|tar|gz|zip|map|min\.js|aux|toc|bbl|blg|fls|synctex|stackdump|core)"
    r"|.*~|#.*#|(?:build|dist|out|target|tmp|temp|test|coverage)[-_.][\w.-]+|[\w.-]+[-_.](?:build|dist|out|tmp|temp|bak|old|copy|backup|test|demo))"
)
_EVERYTHING = re.compile(r"(?:\.|\./\*+|\./\*\*/\*|\./\.\*)/?")


def deletion_problems(command: Command, reach: PathAccess, made: SideEffects, at: int) -> Iterator[tuple[str, str]]:
    """Yield rule and reason for everything a deletion may take that nobody can make again."""
    program = command.program
    if program == "rmdir" or program not in _PROGRAMS:
        return
    options = [word for word in command.words[1:] if word.startswith("-")]
    is_deep = program in _ALWAYS_RECURSIVE or any(
        option in ("--recursive", "--dir") or (option[1:2] != "-" and ("r" in option or "R" in option))
        for option in options
    )
    targets = _targets(command.words)
    if not targets and "/" not in command.words:
        return
    for target in targets:
        yield from _target_problems(target, command, reach, made, at, is_deep=is_deep or "**" in target)


def _targets(words: tuple[str, ...]) -> list[str]:
    if "--" in words:
        at = words.index("--")
        return [*(word for word in words[1:at] if not word.startswith("-")), *words[at + 1 :]]
    return [word for word in words[1:] if not word.startswith("-")]


def _target_problems(
    target: str, command: Command, reach: PathAccess, made: SideEffects, at: int, *, is_deep: bool
) -> Iterator[tuple[str, str]]:
    name = display_word(target)
    canonical = reach.canonical(target, command.cwd)
    if reach.is_temporary(target, command.cwd) and not canonical.rstrip("/").endswith("/*"):
        return
    if is_unknown(target) or is_unknown(command.cwd):
        yield "delete-unknown", "what it deletes is only known at run time"
    elif not command.is_cwd_certain and is_deep and not target.startswith(("/", "~")):
        yield "delete-unknown", f"{name} may be somewhere else if `cd` fails"
    elif _EVERYTHING.fullmatch(canonical) and not is_deep:
        yield "delete-many", f"{name} matches every file in the workspace"
    elif canonical.startswith(("./.git/", "./.git")) and re.fullmatch(r"\./\.git(?:/.*)?", canonical):
        yield "delete-history", f"{name} is the git history of the workspace"
    elif is_deep and not (made.existed_before(join_path(command.cwd, target), at) or _is_build_artifact(canonical)):
        yield "delete-tree", f"it deletes {name} and everything in it"


def _is_build_artifact(canonical: str) -> bool:
    if not canonical.startswith("./"):
        return False
    parts = [part for part in canonical.removeprefix("./").split("/") if part not in ("", "**")]
    if parts and parts[-1] == "*":
        parts.pop()
    return any(_BUILD_ARTIFACTS.fullmatch(part) for part in parts)
