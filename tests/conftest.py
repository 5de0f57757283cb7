"""How the tests run: slow ones first, in a temporary folder of their own in which nothing may be left behind."""

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.programs import require
from tooling.files.temp_dir import remove_stale

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


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        # The workers inherit it. Its path is short, because the paths of sockets are bounded.
        folder = Path(tempfile.mkdtemp(prefix="wl-"))
        folder.chmod(0o755)
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if not _is_worker(session.config):
        # The last tests may have killed a program; what it held is removed at the next start, and nothing starts here.
        remove_stale.cache_clear()
        remove_stale()
    left = sorted(path.name for path in Path(tempfile.gettempdir()).glob("*windlass*"))
    if left and not _is_worker(session.config):
        print(f"\n{len(left)} temporary folders were left behind: {' '.join(left[:5])}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    if not _is_worker(config):
        shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    # Thousands of tests are made here and none of them is garbage: looking for it takes half of the time.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        require(*marker.args)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
