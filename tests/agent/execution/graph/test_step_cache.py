"""The key of a step's result: it depends on everything that determines the result, and on nothing else."""

from dataclasses import replace

import pytest

from agent.execution.graph.step_cache import KeySource, cache_key
from agent.vocabulary.plan import PlanStep
from agent.vocabulary.step import ExecutorProfile

SOURCE = KeySource(lineage="run-1", model="m", request="do it", context="c")
STEP = PlanStep(id="s1", title="t", instruction="i", args={"a": 1, "b": 2})
PROFILE = ExecutorProfile()
KEY = cache_key(SOURCE, STEP, PROFILE, ["k"])


@pytest.mark.parametrize("name", ["lineage", "model", "request", "context"])
def test_the_key_depends_on_the_shared_inputs_of_the_run(name: str) -> None:
    assert cache_key(replace(SOURCE, **{name: "other"}), STEP, PROFILE, ["k"]) != KEY


@pytest.mark.parametrize("name", ["id", "instruction", "tool", "expect", "verify", "model", "ask_question"])
def test_the_key_depends_on_the_fields_of_the_step(name: str) -> None:
    assert cache_key(SOURCE, replace(STEP, **{name: "other"}), PROFILE, ["k"]) != KEY


def test_the_key_depends_on_arguments_allowed_tools_and_dependencies() -> None:
    assert cache_key(SOURCE, replace(STEP, args={"a": 1}), PROFILE, ["k"]) != KEY
    assert cache_key(SOURCE, STEP, replace(PROFILE, allowed_tools=("read_file",)), ["k"]) != KEY
    assert cache_key(SOURCE, STEP, PROFILE, ["other"]) != KEY
    assert cache_key(SOURCE, STEP, PROFILE, []) != KEY


def test_the_key_ignores_title_time_limit_and_argument_order() -> None:
    same = replace(STEP, title="other", timeout_s=3.0, est_usd=0.1, args={"b": 2, "a": 1})
    assert cache_key(SOURCE, same, replace(PROFILE, timeout_ms=1), ["k"]) == KEY


def test_a_key_is_a_valid_file_name() -> None:
    assert len(KEY) == 64 and KEY.isalnum()
    assert cache_key(replace(SOURCE, request="\ud800"), STEP, PROFILE, ["k"]).isalnum()
