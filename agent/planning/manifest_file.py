"""Manifest files: permission manifests in TOML or JSON, parsed strictly and written for editing by hand."""

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from agent.backends.egress.host_rules import HostRuleInvalid, normalize_rule
from agent.planning.plan_text import toml_value
from agent.planning.table_file import TableFormat
from agent.vocabulary.errors import InputError
from tooling.approvals.manifest import LISTS, GivenManifest, Manifest
from tooling.contract.json_codec import DecodeError, decode, encode

VERSION = 1
HINT = "see docs/manifests-and-effects.md for all fields"
_COMMENTS = {
    "plan": "the only plan this is for; without this line it is for any task",
    "programs": "commands that would be asked about: the first words, as for --allow, or a whole command",
    "hosts": "hosts that commands and web tools may reach",
    "writes": "files and folders that tools may change",
    "deletes": "files and folders that tools may delete",
    "tools": "other tools that would ask",
    "secrets": "keys that are used",
    "max_usd": "limit of the cost in USD",
}


class ManifestError(InputError):
    """A manifest is invalid; the message is the reason."""


_FORMAT = TableFormat(kind="manifest", example=f'{{"version": {VERSION}, …}}', hint=HINT, error=ManifestError)


def read_manifest(path: Path) -> GivenManifest:
    """Read a manifest file; raises ManifestError if it is invalid."""
    text = _FORMAT.read(path)
    return GivenManifest(manifest=parse_manifest(text, name=str(path)), path=path)


def parse_manifest(text: str, *, name: str) -> Manifest:
    """Parse the text of a manifest; `name` is the file name in error messages."""
    table = dict(_FORMAT.parse(text, name)[0])
    version = table.pop("version", None)
    if version is None or isinstance(version, bool) or version != VERSION:
        found = "there is no version" if version is None else f"version {version!r} is unknown"
        raise ManifestError(f"{name}: {found}; this program reads version = {VERSION}", HINT)
    try:
        manifest = decode(Manifest, table)
        hosts = tuple(map(normalize_rule, manifest.hosts))
    except (DecodeError, HostRuleInvalid) as error:
        raise ManifestError(f"{name}: {error}", HINT) from error
    for list_name in LISTS:
        if any(not entry.strip() for entry in getattr(manifest, list_name)):
            raise ManifestError(f"{name}: {list_name} has an empty entry", HINT)
    if manifest.max_usd is not None and not 0 <= manifest.max_usd < float("inf"):
        raise ManifestError(f"{name}: max_usd: expected an amount in USD, got {manifest.max_usd}", HINT)
    return replace(manifest, hosts=hosts)


def toml_manifest(manifest: Manifest, *, head: Sequence[str] = (), is_commented: bool = True) -> str:
    """Return a manifest as TOML, one entry per line so that a diff of two is readable."""
    lines = [f"# {line}".rstrip() for line in head]
    lines += [f"version = {VERSION}"]
    for name, value in _values(manifest).items():
        if value in ((), "", None) and not (is_commented and name in LISTS):
            continue
        lines += ["", f"# {_COMMENTS[name]}"] if is_commented else []
        lines += _toml_lines(name, value)
    return "\n".join(lines) + "\n"


def json_manifest(manifest: Manifest) -> str:
    """Return a manifest as JSON."""
    return json.dumps({"version": VERSION, **manifest_data(manifest)}, ensure_ascii=False, indent=2) + "\n"


def manifest_data(manifest: Manifest) -> dict[str, object]:
    """Return the non-default fields of a manifest."""
    return {name: encode(value) for name, value in _values(manifest).items() if value not in ((), "", None)}


def change_for(manifest: Manifest, missing: Manifest) -> str:
    """Return the lines of a manifest that must change to grant what is missing, in their new form."""
    merged = manifest.merge(missing)
    changed = [name for name in LISTS if getattr(missing, name)]
    lines = [line for name in changed for line in _toml_lines(name, getattr(merged, name))]
    lines += [f"max_usd = {missing.max_usd:g}"] if missing.max_usd is not None else []
    lines += [f"plan = {toml_value(missing.plan)}"] if missing.plan else []
    return "\n".join(lines)


def _values(manifest: Manifest) -> dict[str, object]:
    return {field.name: getattr(manifest, field.name) for field in fields(Manifest)}


def _toml_lines(name: str, value: object) -> list[str]:
    if not isinstance(value, tuple) or not value:
        return [f"{name} = {toml_value(value)}"]
    return [f"{name} = [", *(f"  {toml_value(entry)}," for entry in value), "]"]
