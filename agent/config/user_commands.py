"""User commands: Markdown files in the settings folder and in plugins, each a request template."""

import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import did_you_mean
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.open_regular import read_regular

FOLDER = "commands"
_FRONT_MATTER = lazy_pattern(r"---\s*\n(.*?)\n---\s*\n?(.*)", re.DOTALL)
MAX_BYTES = 1_000_000
_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_PLACEHOLDER = lazy_pattern(r"\$(?:ARGUMENTS\b|([1-9]))")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCommand:
    """A command loaded from one file; `body` is the request."""

    name: str
    help: str
    usage: str
    body: str

    def expand(self, argument: str) -> str:
        """Return the request with `$ARGUMENTS`, `$1`, `$2` … replaced, or with the argument appended."""
        words = _split(argument)

        def value(found: re.Match[str]) -> str:
            if found[1] is None:
                return argument
            return words[int(found[1]) - 1] if int(found[1]) <= len(words) else ""

        if _PLACEHOLDER.search(self.body):
            return _PLACEHOLDER.sub(value, self.body).strip()
        return f"{self.body}\n\n{argument}".strip()


def find_user_command(name: str, config_dirs: Iterable[Path]) -> UserCommand:
    """Return a command by its name. Raises InputError if there is none, or if its file is invalid."""
    folders = list(config_dirs)
    for folder in folders:
        for path in sorted((folder / FOLDER).glob("*.md")):
            if path.stem.lower() == name.lower():
                return _load(path)
    known = sorted({path.stem.lower() for folder in folders for path in (folder / FOLDER).glob("*.md")})
    hint = f"your commands: {', '.join(known)}" if known else f"commands are Markdown files in {folders[0] / FOLDER}"
    raise InputError(f"there is no command {name!r}{did_you_mean(name, known)}", hint)


def load_user_commands(config_dir: Path, warn: Callable[[str], None]) -> list[UserCommand]:
    """Load the commands of the settings folder, or of a plugin's; invalid files are skipped with a warning."""
    commands: list[UserCommand] = []
    for path in sorted((config_dir / FOLDER).glob("*.md")):
        try:
            commands.append(_load(path))
        except InputError as problem:
            warn(f"{problem.message}; {problem.hint}" if problem.hint else problem.message)
    return commands


def _load(path: Path) -> UserCommand:
    if not _NAME.fullmatch(path.stem):
        raise InputError(f"{path} is not a valid command name", "use only letters, digits, '-' and '_'")
    try:
        text = read_regular(path, limit=MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    match = _FRONT_MATTER.match(text)
    fields = dict(_parse_fields(match[1])) if match else {}
    body = (match[2] if match else text).strip()
    if not body:
        raise InputError(f"{path} contains no request", "write the request below the front matter")
    first = body.splitlines()[0]
    return UserCommand(
        name=path.stem.lower(),
        help=fields.get("description", first),
        usage=fields.get("argument-hint", ""),
        body=body,
    )


def _split(argument: str) -> list[str]:
    try:
        return shlex.split(argument)
    except ValueError:
        # An apostrophe is not a quotation mark.
        return argument.split()


def _parse_fields(front: str) -> list[tuple[str, str]]:
    pairs = [line.partition(":") for line in front.splitlines() if ":" in line]
    return [(key.strip(), value.strip().strip("\"'")) for key, _, value in pairs]
