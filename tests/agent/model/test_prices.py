"""Prices come from the table shipped with litellm, without importing litellm."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.model.prices import PriceTable
from agent.vocabulary.usage import Usage

TABLE = """{
    "sample_spec": {
        "input_cost_per_token": 0.0
    },
    "big": {
        "cache_creation_input_token_cost": 4e-06,
        "cache_read_input_token_cost": 5e-07,
        "input_cost_per_token": 2e-06,
        "input_cost_per_token_above_200k_tokens": 4e-06,
        "max_input_tokens": 100000,
        "nested": {
            "small": 1
        },
        "output_cost_per_token": 1e-05
    },
    "small": {
        "input_cost_per_token": 1e-06,
        "max_tokens": "unknown",
        "output_cost_per_token": 1e-06
    },
    "together_ai/org/name": {
        "input_cost_per_token": 1e-06,
        "max_tokens": 4096,
        "output_cost_per_token": 2e-06
    },
    "voice": {
        "input_cost_per_second": 1
    }
}
"""
USAGE = Usage(input_tokens=100_000, output_tokens=10_000)


@pytest.fixture
def table(tmp_path: Path) -> PriceTable:
    path = tmp_path / "prices.json"
    path.write_text(TABLE)
    return PriceTable(path)


def test_the_cost_of_a_call_comes_from_the_table(table: PriceTable) -> None:
    assert table.cost("big", USAGE) == pytest.approx(0.2 + 0.1)
    assert table.cost("openai/big", USAGE) == pytest.approx(0.3)
    assert table.cost("openrouter/someone/big", USAGE) == pytest.approx(0.3)
    assert table.cost("together/org/name", USAGE) == pytest.approx(0.12)


def test_cached_tokens_have_their_own_prices(table: PriceTable) -> None:
    usage = Usage(input_tokens=100_000, cache_read_tokens=60_000, cache_write_tokens=30_000)
    assert table.cost("big", usage) == pytest.approx(10_000 * 2e-6 + 60_000 * 5e-7 + 30_000 * 4e-6)
    assert table.cost("small", usage) == pytest.approx(0.1)


def test_a_long_prompt_costs_more_where_the_table_says_so(table: PriceTable) -> None:
    assert table.cost("big", Usage(input_tokens=300_000)) == pytest.approx(1.2)
    assert table.cost("small", Usage(input_tokens=300_000)) == pytest.approx(0.3)


@pytest.mark.parametrize("model", ["ollama/llama3", "lm-studio/x", "vllm/x", "llamacpp/x", "script:a.jsonl"])
def test_local_and_scripted_models_are_free(table: PriceTable, model: str) -> None:
    assert table.cost(model, USAGE) == 0.0


@pytest.mark.parametrize("model", ["no/such-model", "", "groq/big", "voice", 'a"b', "nested"])
def test_the_cost_of_an_unlisted_model_is_unknown(table: PriceTable, model: str) -> None:
    assert table.cost(model, USAGE) is None


def test_context_sizes_come_from_the_table(table: PriceTable) -> None:
    assert table.context_size("big") == 100_000
    assert table.context_size("together/org/name") == 4096
    assert [table.context_size(model) for model in ("small", "script:x", "unknown")] == [None, None, None]


@pytest.mark.parametrize("content", [None, "", '{\n    "big": {\n broken'])
def test_a_missing_or_broken_table_gives_unknown_values(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "prices.json"
    if content is not None:
        path.write_text(content)
    table = PriceTable(path)
    assert (table.cost("big", USAGE), table.context_size("big")) == (None, None)


def test_the_shipped_table_has_common_models_without_importing_litellm() -> None:
    code = (
        "import sys\n"
        "from agent.model.prices import PriceTable\n"
        "from agent.vocabulary.usage import Usage\n"
        "table, usage = PriceTable(), Usage(input_tokens=1000, output_tokens=1000)\n"
        "for model in ('gpt-4o', 'openai/gpt-4o', 'anthropic/claude-sonnet-4-5', 'deepseek/deepseek-chat',\n"
        "              'openrouter/anthropic/claude-sonnet-4.5', 'mistral/mistral-large-latest'):\n"
        "    assert 0 < table.cost(model, usage) < 1, model\n"
        "    assert table.context_size(model) >= 64000, model\n"
        "assert 'litellm' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
