"""How the tests run: slow ones first, in a temporary folder of their own in which nothing may be left behind."""

import gc
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.examples import use_examples
from tests.programs import require
from tooling.files.temp_dir import remove_stale

# A script that starts the tests in the background lets them ignore Ctrl-C, and so would every program that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--chosen-sandbox",
        action="store_true",
        help="leave out tests that name the sandbox they use: for them it makes no difference what is installed",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    # Many tests, most of the slow ones, wait for a process, a clock or a screen while others can use the core.
    return (os.cpu_count() or 1) * (2 if _is_quick(config) else 3)


# Parameters of tests that name the sandbox they use.
_SANDBOXES = {"host", "landlock", "bubblewrap", "docker"}
# Tests that share a server or a build that takes long to start, by parts of their names.
_SHARED: Mapping[str, tuple[str, ...]] = {
    "browser": ("tests/agent/api/test_page.py",),
    "engine": ("[docker", "tests/sandbox/test_container", "tests/sandbox/test_docker_command.py"),
    "pool": ("tests/agent/service/containers/",),
    "postgres": ("[postgres", "tests/agent/service/test_liveness.py"),
    "published": ("tests/tooling/mcp/test_ordinary_servers.py",),
    "wheel": ("tests/house/test_wheel.py", "tests/house/test_plain_install.py"),
}


class SharedServerScheduling(LoadScopeScheduling):
    """Runs all tests that share a server on one worker, and every other test wherever there is room."""

    def _split_scope(self, nodeid: str) -> str:
        shared = (group for group, parts in _SHARED.items() if any(part in nodeid for part in parts))
        return next(shared, nodeid)

    # What follows is for workers that die: without it, their tests would be run without end, or never.
    def remove_node(self, node: WorkerController) -> str | None:
        units = self.assigned_work[node]
        crashed = next((test for unit in units.values() for test, is_done in unit.items() if not is_done), None)
        if crashed is not None:
            units[self._split_scope(crashed)][crashed] = True
        self.assigned_work[node] = {scope: unit for scope, unit in units.items() if not all(unit.values())}
        super().remove_node(node)
        return crashed

    def _reschedule(self, node: WorkerController) -> None:
        if node in self.registered_collections:
            super()._reschedule(node)

    def schedule(self) -> None:
        super().schedule()
        # A worker begins a test only when it knows the next one, or that there is none.
        for node in self.nodes:
            self._reschedule(node)


# `--dist loadgroup` does the same by markers, but groups nothing with pytest 9.2 and xdist 3.8.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharedServerScheduling | None:
    return SharedServerScheduling(config, log) if config.option.dist == "loadscope" else None


def _is_quick(config: pytest.Config) -> bool:
    """Return whether this is the part of the tests that `make check` runs."""
    return bool(config.option.markexpr == "not slow")


# A module of slow tests only.
_SLOW_MODULE = re.compile(r"^pytestmark = \[?pytest\.mark\.slow\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    # Every worker imports every module; a third of them has nothing that `make check` runs.
    is_module = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return (is_module and _is_quick(config) and bool(_SLOW_MODULE.search(collection_path.read_text()))) or None


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    use_examples(all_of_them=not _is_quick(config))
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
        # Syntax trees of the whole source are no garbage either, and take five times as long to build otherwise.
        gc.set_threshold(100_000, 20, 20)
        gc.enable()


# Longer than any test takes on a busy machine; without it, one that waits in vain would never let the others end.
_LIMIT_S = 600
_KILLS_IN_TIME = 20


class TestTimeout(BaseException):
    """A test took longer than the limit; not an `Exception`, so that no test takes it for a result."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    def give_up(*_: object) -> None:
        raise TestTimeout(f"the test took longer than {_LIMIT_S} s")

    signal.signal(signal.SIGALRM, give_up)
    # `make soak` kills programs for longer than that.
    signal.alarm(0 if item.config.getoption("kills", default=0) > _KILLS_IN_TIME else _LIMIT_S)
    try:
        return (yield)
    finally:
        signal.alarm(0)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        require(*marker.args)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = [item for item in items if isinstance(item, pytest.Function)]
    if config.option.chosen_sandbox:
        items[:] = [
            test for test in tests if not _SANDBOXES & _parameters(test) and "engine_socket" not in test.fixturenames
        ]
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _parameters(test: pytest.Function) -> set[str]:
    values = test.callspec.params.values() if hasattr(test, "callspec") else ()
    return {value for value in values if isinstance(value, str)}
