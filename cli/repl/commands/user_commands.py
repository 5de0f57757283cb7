"""User-defined slash commands: Markdown files in the settings folder, each a request template."""

import re
from collections.abc import Callable
from pathlib import Path

from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass

FOLDER = "commands"
_FRONT_MATTER = re.compile(r"---\s*\n(.*?)\n---\s*\n?(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_ARGUMENTS = "$ARGUMENTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCommand:
    """A command loaded from one file; `body` is the request."""

    name: str
    help: str
    usage: str
    body: str

    def expand(self, argument: str) -> str:
        """Return the request with `$ARGUMENTS` replaced, or the argument appended."""
        if _ARGUMENTS in self.body:
            return self.body.replace(_ARGUMENTS, argument)
        return f"{self.body}\n\n{argument}".strip()


def load_user_commands(config_dir: Path, warn: Callable[[str], None]) -> list[UserCommand]:
    """Load the commands of the settings folder; invalid files are skipped with a warning."""
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
        text = path.read_text("utf-8")
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


def _parse_fields(front: str) -> list[tuple[str, str]]:
    pairs = [line.partition(":") for line in front.splitlines() if ":" in line]
    return [(key.strip(), value.strip().strip("\"'")) for key, _, value in pairs]
