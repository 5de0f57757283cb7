"""The wheel contains the complete program and works outside the checkout."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from agent.version import VERSION
from tests.house.source_tree import LAYERS, ROOT

pytestmark = pytest.mark.slow

# Without site's .pth files, which would make the checkout importable.
LIBRARIES = sysconfig.get_paths()["purelib"]
DATA = tuple(
    str(path.relative_to(ROOT))
    for layer in LAYERS
    for path in sorted((ROOT / layer).rglob("*"))
    if path.is_file() and path.suffix != ".pyc"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return next(folder.glob("windlass-*.whl"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run_from_root(site: Path, source: str, *words: str) -> str:
    start = f"import sys; sys.path[:0] = [{str(site)!r}, {LIBRARIES!r}]; "
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + source, *words],
        env={"HOME": str(site), "PATH": os.defpath},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_program(site: Path, *words: str) -> str:
    return run_from_root(site, "from cli.main import main; sys.exit(main())", *words)


def test_the_wheel_contains_every_source_and_data_file_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == set(DATA)


def test_both_commands_and_the_required_libraries_are_declared(site: Path) -> None:
    info = next(site.glob("windlass-*.dist-info"))
    assert "agent = cli.main:main\nwindlass = cli.main:main" in (info / "entry_points.txt").read_text()
    metadata = (info / "METADATA").read_text()
    for line in ("Requires-Python: >=3.11", "Requires-Dist: lxml-html-clean", "Provides-Extra: server"):
        assert line in metadata


def test_the_version_is_printed_from_the_root_folder(site: Path) -> None:
    assert VERSION in run_program(site, "--version")


def test_the_checkout_is_not_importable(site: Path) -> None:
    assert run_from_root(site, "import agent; print(agent.__file__)").startswith(str(site))


def test_the_patterns_are_found_from_the_root_folder(site: Path) -> None:
    source = (
        "from importlib.resources import files;"
        "print(*sorted(f.name for f in files('patterns').iterdir() if f.is_file()))"
    )
    shipped = sorted(path.name for path in (ROOT / "patterns").iterdir() if path.is_file())
    assert run_from_root(site, source).split() == shipped


def test_the_demo_runs_from_the_root_folder(site: Path) -> None:
    assert run_program(site, "demo").strip()


def test_the_shell_completion_scripts_are_included(site: Path) -> None:
    assert all("__complete" in run_program(site, "--show-completion", shell) for shell in ("bash", "zsh", "fish"))
