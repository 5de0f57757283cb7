"""Checks model names: by their form, by the known providers and models, and by asking the server."""

from pathlib import Path

from agent.config.environment import key_variables
from agent.config.settings import Settings
from agent.config.user_dirs import os_environ
from agent.model.faults import FAULTS, ModelFault
from agent.model.http.exchange import fetch
from agent.model.json_values import objects_at, text_at
from agent.model.prices import PriceTable
from agent.model.providers import GENERIC, PROVIDERS, Endpoint, get_provider, resolve
from agent.model.wire.http_client import HEADERS, WIRES
from agent.model.wire.sse import parse_json_object
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import did_you_mean

SCRIPT_PREFIX = "script:"
ANSWER_LIMIT_S = 10.0
_SHOWN_NAMES = 5
_OK, _DENIED = 200, (401, 403)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameCheck:
    """Result of a check: a `problem` if the name cannot be a model, a `doubt` if it may not work."""

    problem: str = ""
    doubt: str = ""


def check_name(name: str, settings: Settings, folder: Path) -> NameCheck:
    """Check a name without asking any server; the path of a script is relative to `folder`."""
    if name.startswith(SCRIPT_PREFIX):
        path = name.removeprefix(SCRIPT_PREFIX)
        return NameCheck(problem="" if (folder / Path(path).expanduser()).is_file() else f"script not found: {path}")
    if any(char.isspace() for char in name):
        return NameCheck(problem=f"{name!r} is not a model")
    try:
        endpoint = resolve(name, settings)
    except ModelFault as fault:
        return NameCheck(doubt=str(fault))
    if endpoint.wire == "litellm" and get_provider(name) is not GENERIC:
        return NameCheck(problem=f"{name!r} is a provider, not a model; write {name}/NAME")
    if not (endpoint.provider and endpoint.model):
        suggestion = "" if "/" in name else did_you_mean(name, [row.name for row in PROVIDERS])
        return NameCheck(problem=f"{name!r} is not a model{suggestion}")
    return NameCheck(doubt=_doubt(endpoint))


async def find_problem(name: str, settings: Settings, folder: Path) -> str:
    """Return why a model should not be saved, asking its server if it is unknown here; empty if it works."""
    check = check_name(name, settings, folder)
    if check.problem or name.startswith(SCRIPT_PREFIX):
        return check.problem
    try:
        endpoint = resolve(name, settings)
    except ModelFault as fault:
        return str(fault)
    if endpoint.wire == "litellm":
        return check.doubt or _missing_key(endpoint)
    is_known = not check.doubt and endpoint.base_url == get_provider(endpoint.provider).base_url
    if is_known and not get_provider(endpoint.provider).is_local:
        return ""
    return await _ask_server(endpoint)


def _doubt(endpoint: Endpoint) -> str:
    provider = get_provider(endpoint.provider)
    models = PriceTable().list_models(endpoint.provider, provider.aliases)
    if endpoint.wire == "litellm" and not models:
        suggestion = did_you_mean(endpoint.provider, [row.name for row in PROVIDERS])
        return f"unknown provider {endpoint.provider!r}{suggestion}"
    is_elsewhere = endpoint.wire != "litellm" and endpoint.base_url != provider.base_url
    if not models or is_elsewhere or provider.is_local:
        # Only the server knows its models.
        return ""
    names = {endpoint.model, endpoint.model.partition("/")[2], endpoint.model.rpartition("/")[2]}
    return "" if names & set(models) else f"{endpoint.model} is not a known model of {endpoint.provider}"


def _missing_key(endpoint: Endpoint) -> str:
    variables = key_variables(endpoint.provider)
    return f"{FAULTS['missing'].message}: set {variables[0]}" if variables and not endpoint.key else ""


async def _ask_server(endpoint: Endpoint) -> str:
    """Return why an endpoint cannot serve its model; empty if it lists the model, or answers and lists nothing."""
    headers = {**HEADERS, **WIRES[endpoint.wire].headers(endpoint)}
    try:
        status, body = await fetch(f"{endpoint.base_url}/models", headers, os_environ(), ANSWER_LIMIT_S)
    except ModelFault:
        return f"{FAULTS['connect'].message}: no answer from {endpoint.base_url}"
    if status in _DENIED:
        return FAULTS["auth"].message
    names = _listed_names(body) if status == _OK else []
    if not names or endpoint.model in names or f"{endpoint.model}:latest" in names:
        return ""
    listed = ", ".join(names[:_SHOWN_NAMES]) + (", …" if len(names) > _SHOWN_NAMES else "")
    return f"{endpoint.base_url} has no model {endpoint.model}; it has {listed}"


def _listed_names(body: bytes) -> list[str]:
    try:
        data = parse_json_object(body.decode("utf-8", "replace"))
    except ModelFault:
        return []
    return [name for item in objects_at(data, "data") if (name := text_at(item, "id"))]
