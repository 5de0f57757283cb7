"""How the tests are handed out: the slow ones first, so that at the end no worker is left alone with one."""

import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("unhurried", parent=settings.default, deadline=None)
settings.load_profile("unhurried")

# A script that starts the tests in the background lets them ignore Ctrl-C, and so would every program that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    # The slow tests wait for a process, a clock or a screen; with two workers a core somebody always computes.
    return (os.cpu_count() or 1) * (1 if config.option.markexpr == "not slow" else 2)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    # Thousands of tests are made here and none of them is garbage: looking for it takes half of the time.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
