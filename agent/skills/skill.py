"""One skill: a folder with SKILL.md, whose front matter describes its purpose and whose body has the instructions."""

import re
from collections.abc import Mapping
from pathlib import Path

from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.open_regular import read_regular, stat_regular
from tooling.output import sanitize_output
from tooling.web.html.hidden_unicode import strip_invisible

SKILL_FILE = "SKILL.md"
_FRONT_MATTER = lazy_pattern(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n(.*))?\Z", re.DOTALL)
_NAME = lazy_pattern(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_KNOWN_FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_MAX_NAME_CHARS = 64
_MAX_DESCRIPTION_CHARS = 1024
_MAX_COMPATIBILITY_CHARS = 500
_MAX_FILE_BYTES = 500_000
_MAX_FRONT_MATTER_CHARS = 10_000
# The characters that begin another level of YAML; each level takes longer than the one before.
_MAX_NESTING = 300
_LONG_BODY_LINES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A valid skill; `source` describes its origin."""

    name: str
    description: str
    body: str
    folder: Path
    source: str
    fields: Mapping[str, object]

    @property
    def files(self) -> tuple[str, ...]:
        """The scripts, references and other files, relative to the folder."""
        found = (path for path in sorted(self.folder.rglob("*")) if path.is_file() and path.name != SKILL_FILE)
        names = [str(path.relative_to(self.folder)) for path in found]
        return tuple(name for name in names if not any(part.startswith(".") for part in Path(name).parts))


def read_skill(folder: Path, source: str) -> Skill:
    """Read a skill. Raises InputError if it is not usable for a model."""
    file = folder / SKILL_FILE
    try:
        if stat_regular(file).st_size > _MAX_FILE_BYTES:
            raise InputError(f"{file} is larger than {_MAX_FILE_BYTES // 1000} kB")
        # Nothing that the user would not see when reading the file.
        text, _ = strip_invisible(sanitize_output(read_regular(file).decode()))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"cannot read {file}: {reason}") from error
    fields, body = _split(text, file)
    description = _one_line(fields.get("description"))
    if not description:
        raise InputError(f"{file} has no description", "it tells the model when to use the skill")
    return Skill(
        name=_one_line(fields.get("name")) or folder.name,
        description=description[:_MAX_DESCRIPTION_CHARS],
        body=body.strip(),
        folder=folder,
        source=source,
        fields=fields,
    )


def _one_line(value: object) -> str:
    """Return a value of the front matter as one line; an escape in YAML can be any character."""
    return " ".join(strip_invisible(sanitize_output(str(value or "")))[0].split())


def _split(text: str, file: Path) -> tuple[Mapping[str, object], str]:
    found = _FRONT_MATTER.match(text)
    if not found:
        raise InputError(
            f"{file} has no front matter", "it starts with a line ---, then name and description, then ---"
        )
    if len(found[1]) > _MAX_FRONT_MATTER_CHARS or max(map(found[1].count, "[{-?")) > _MAX_NESTING:
        raise InputError(f"{file}: its front matter is too long or nested too deeply")
    # Only skills need YAML.
    import yaml  # type: ignore[import-untyped]

    try:
        # A few lines of aliases to aliases are gigabytes of text.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(found[1])):
            raise InputError(f"{file}: its front matter has aliases, which are not supported")
        fields = yaml.safe_load(found[1])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: its front matter is not YAML: {' '.join(str(error).split())[:300]}") from error
    if not isinstance(fields, Mapping):
        raise InputError(f"{file}: its front matter has no fields")
    return {str(key): value for key, value in fields.items()}, found[2] or ""


def is_skill_name(name: str) -> bool:
    """Return whether the name is valid in the format."""
    return bool(_NAME.fullmatch(name)) and len(name) <= _MAX_NAME_CHARS


def problems_of(skill: Skill) -> list[str]:
    """Return where a skill violates the format, as messages for its author."""
    found: list[str] = []
    name, raw = skill.name, str(skill.fields.get("description") or "")
    if "name" not in skill.fields:
        found.append("name is missing")
    if not is_skill_name(name):
        found.append(f"name: {name!r} is not lowercase letters, digits and single hyphens, at most {_MAX_NAME_CHARS}")
    if name != skill.folder.name:
        found.append(f"name: {name!r} is not the name of its folder, {skill.folder.name!r}")
    if len(raw) > _MAX_DESCRIPTION_CHARS:
        found.append(f"description: {len(raw)} characters, at most {_MAX_DESCRIPTION_CHARS} are used")
    if len(str(skill.fields.get("compatibility") or "")) > _MAX_COMPATIBILITY_CHARS:
        found.append(f"compatibility: more than {_MAX_COMPATIBILITY_CHARS} characters")
    if not isinstance(skill.fields.get("metadata", {}), Mapping):
        found.append("metadata: expected a table")
    found += [f"unknown field {key}" for key in skill.fields if key not in _KNOWN_FIELDS]
    if not skill.body:
        found.append("the body is empty")
    if skill.body.count("\n") >= _LONG_BODY_LINES:
        found.append(f"the body has over {_LONG_BODY_LINES} lines; move parts of it to references/")
    found += [f"{file}: no such file" for file in _missing_files(skill)]
    return found


def _missing_files(skill: Skill) -> list[str]:
    """Return the scripts and references that the body names but the folder lacks."""
    named = re.findall(r"(?<![\w/.-])((?:scripts|references|assets)/[\w./-]*\w)", skill.body)
    return [name for name in dict.fromkeys(named) if not (skill.folder / name).exists()]
