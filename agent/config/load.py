"""Settings in layers: defaults < user file < profile < environment < flags, each value with its origin."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from agent.config.environment import PROVIDER_NAMES, environment_leaves, unknown_names
from agent.config.flags import flag_leaves
from agent.config.origin import DEFAULT, KeyPath, Leaf, Origin
from agent.config.places import config_dir as user_config_dir
from agent.config.secrets import secrets_of
from agent.config.settings import Settings
from agent.config.user_file import PROFILES, UserFile, read_user_file
from agent.config.values import nested
from agent.vocabulary.errors import ConfigError, UsageError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode, nearest

# A bare run depends on nothing that a person or a project has left lying about, unless a flag says so.
_BARE = tuple(
    Leaf(path=(name,), value=False, origin=Origin(layer="flag", where="--bare"), place="flag --bare")
    for name in ("memory", "project_notes")
)
_PROVIDERS = frozenset(path[1] for path in PROVIDER_NAMES.values() if path[0] == "keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The settings of a run, where each came from, what to warn of, and the texts to keep secret."""

    settings: Settings
    origins: Mapping[str, Origin]
    warnings: tuple[str, ...]
    secrets: tuple[str, ...]


def load_settings(
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    assignments: Sequence[str] = (),
    profile: str | None = None,
    config_dir: Path | None = None,
    strict: bool = False,
    bare: bool = False,
) -> Loaded:
    """Load the settings of a run, or raise ConfigError; `assignments` are the `key=value` texts of --set."""
    path = (config_dir or user_config_dir(environ)) / "config.toml"
    file = UserFile(profiles={}) if bare else read_user_file(path)
    chosen = _profile_leaves(file, path, environ, profile, bare=bare)
    warnings = (*file.warnings, *unknown_names(environ, strict=strict))
    merged = _merged((*file.leaves, *chosen, *environment_leaves(environ)))
    if bare:
        merged |= _merged(_BARE)
    merged |= _merged(flag_leaves(flags or {}, assignments, below=merged))
    _keep_openai_address_to_openai(merged)
    settings = decode(Settings, nested({path: leaf.value for path, leaf in merged.items()}))
    return Loaded(
        settings=settings,
        origins=_origins(merged),
        warnings=warnings,
        secrets=secrets_of(settings, environ),
    )


def _profile_leaves(
    file: UserFile, path: Path, environ: Mapping[str, str], profile: str | None, *, bare: bool
) -> tuple[Leaf, ...]:
    if bare:
        if profile:
            raise UsageError("--profile needs the settings file that --bare leaves out")
        return ()
    name = profile or environ.get("AGENT_PROFILE")
    if not name:
        return ()
    if name not in file.profiles:
        place = "flag --profile" if profile else "environment AGENT_PROFILE"
        known = ", ".join(file.profiles) or "none"
        raise ConfigError(
            f"{place}: unknown profile {name}{nearest(name, list(file.profiles))}",
            f"{path} has these profiles: {known}; add one as a table [{PROFILES}.{name}]",
        )
    return file.profiles[name]


def _merged(leaves: Sequence[Leaf]) -> dict[KeyPath, Leaf]:
    return {leaf.path: leaf for leaf in leaves}


def _keep_openai_address_to_openai(merged: dict[KeyPath, Leaf]) -> None:
    """Drop an address meant for OpenAI's protocol when the model names another provider.

    Otherwise that provider's key would be sent to a server it does not belong to.
    """
    base, model = merged.get(("api_base",)), merged.get(("model",))
    if base is None or model is None or not base.origin.where.startswith("OPENAI_"):
        return
    provider = str(model.value).partition("/")[0]
    if model.origin.where != "OPENAI_MODEL" and provider in _PROVIDERS - {"openai"}:
        del merged[("api_base",)]


def _origins(merged: Mapping[KeyPath, Leaf]) -> dict[str, Origin]:
    origins = {field.name: DEFAULT for field in fields(Settings)}
    return origins | {leaf.name: leaf.origin for leaf in merged.values()}
