"""Prices and context sizes of models, from the data file shipped with litellm."""

import json
import mmap
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agent.vocabulary.usage import Usage

_TABLE = "model_prices_and_context_window_backup.json"
_LOCAL_PROVIDERS = frozenset(
    {"ollama", "ollama_chat", "lm-studio", "lm_studio", "lmstudio", "vllm", "hosted_vllm"}
    | {"llamacpp", "llama.cpp", "llama-cpp", "llama_cpp", "llamafile"}
)
_TABLE_NAMES = {"together": "together_ai", "google": "gemini", "fireworks": "fireworks_ai"}
# The table lists these models without a provider prefix.
_BARE_IN_TABLE = frozenset({"openai", "anthropic", "openrouter"})
_LONG_PROMPT_TOKENS = 200_000
# For these providers the table lists every model that accepts images; for others it may be incomplete.
_COMPLETE_ABOUT_VISION = frozenset({"openai", "anthropic", "deepseek", "groq", "mistral", "gemini", "xai", "ollama"})
_CHAT_MODES = ("chat", "responses")


class PriceTable:
    """Looks up the price and context size of a model; None if the table does not have it."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._rows: dict[str, Mapping[str, object] | None] = {}

    def cost(self, model: str, usage: Usage) -> float | None:
        """Return the cost of a call in USD; `usage.input_tokens` includes cached tokens."""
        if _is_free(model):
            return 0.0
        row = self._row(model)
        if row is None:
            return None
        price_in = _price(row, "input_cost_per_token", usage)
        price_out = _price(row, "output_cost_per_token", usage)
        if price_in is None or price_out is None:
            return None
        price_read = _price(row, "cache_read_input_token_cost", usage)
        # Zero means unknown: providers that do not charge extra for cache writes charge the input price.
        price_write = _price(row, "cache_creation_input_token_cost", usage) or price_in
        fresh = max(0, usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens)
        return (
            fresh * price_in
            + usage.cache_read_tokens * (price_in if price_read is None else price_read)
            + usage.cache_write_tokens * price_write
            + usage.output_tokens * price_out
        )

    def context_size(self, model: str) -> int | None:
        """Return the context size of a model in tokens."""
        row = self._row(model) or {}
        for key in ("max_input_tokens", "max_tokens"):
            value = row.get(key)
            if isinstance(value, int | float) and value > 0:
                return int(value)
        return None

    def can_see(self, model: str) -> bool | None:
        """Return whether a model accepts images."""
        row = self._row(model) or {}
        known = row.get("supports_vision")
        if isinstance(known, bool):
            return known
        is_tuned = model.rpartition("/")[2].startswith("ft:")
        return False if row.get("litellm_provider") in _COMPLETE_ABOUT_VISION and not is_tuned else None

    def list_models(self, provider: str, aliases: Iterable[str] = ()) -> list[str]:
        """Return the chat models of a provider without its prefix, in the order of the table."""
        names = {provider, *aliases, _TABLE_NAMES.get(provider, provider)}
        found = (
            name.removeprefix(f"{row['litellm_provider']}/")
            for name, row in self._load_table().items()
            if isinstance(row, dict) and row.get("litellm_provider") in names and row.get("mode") in _CHAT_MODES
        )
        return list(dict.fromkeys(found))

    def _load_table(self) -> Mapping[str, object]:
        path = self._path or _shipped_table()
        try:
            table: object = json.loads(path.read_bytes()) if path else {}
        except (OSError, ValueError):
            return {}
        return table if isinstance(table, dict) else {}

    def _row(self, model: str) -> Mapping[str, object] | None:
        if model not in self._rows:
            self._rows[model] = None if model.startswith("script:") else self._find_row(model)
        return self._rows[model]

    def _find_row(self, model: str) -> Mapping[str, object] | None:
        path = self._path or _shipped_table()
        if path is None:
            return None
        try:
            # Mapped, not read: the table has megabytes and only one row is needed.
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as table:
                return next((row for name in _candidate_names(model) if (row := _parse_row(table, name))), None)
        except (OSError, ValueError):
            return None


def _is_free(model: str) -> bool:
    provider = model.partition("/")[0]
    return (
        model.startswith("script:")
        or provider in _LOCAL_PROVIDERS
        or (provider == "openrouter" and model.endswith(":free"))
    )


def _candidate_names(model: str) -> Iterator[str]:
    """Yield the names under which the table may list a model."""
    yield model
    provider, slash, rest = model.partition("/")
    if not slash:
        return
    if provider in _TABLE_NAMES:
        yield f"{_TABLE_NAMES[provider]}/{rest}"
    if provider in _BARE_IN_TABLE:
        yield rest
    if provider == "openrouter":
        name = rest.rpartition("/")[2]
        yield name
        yield name.replace(".", "-")


def _parse_row(table: mmap.mmap, name: str) -> Mapping[str, object] | None:
    """Parse the object of one model without parsing the rest of the table."""
    key = f"\n    {json.dumps(name)}: ".encode()
    start = table.find(key)
    if start < 0:
        return None
    start += len(key)
    end = table.find(b"\n    }", start)
    row: object = json.loads(table[start : end + len(b"\n    }")])
    return row if isinstance(row, dict) else None


def _price(row: Mapping[str, object], key: str, usage: Usage) -> float | None:
    value = row.get(key)
    if usage.input_tokens > _LONG_PROMPT_TOKENS:
        value = row.get(f"{key}_above_200k_tokens", value)
    return float(value) if isinstance(value, int | float) else None


def _shipped_table() -> Path | None:
    # Nearly always found on the path; importing what knows of other places takes longer.
    for folder in sys.path:
        if (path := Path(folder, "litellm", _TABLE)).is_file():
            return path
    from importlib.util import find_spec

    spec = find_spec("litellm")
    folders = spec.submodule_search_locations if spec else None
    return Path(next(iter(folders))) / _TABLE if folders else None
