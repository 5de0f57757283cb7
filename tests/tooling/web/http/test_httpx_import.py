"""httpx is imported without the modules a run does not need; other code can still import them."""

from pathlib import Path

import pytest

from tests.house.program import run_python

pytestmark = pytest.mark.slow

LEAN = "from tooling.web.http.httpx_import import httpx; httpx.AsyncClient(verify=False)"
EXTRAS = {"click", "rich", "pygments", "h2", "hpack"}


def test_neither_the_command_line_nor_http2_is_imported(tmp_path: Path) -> None:
    assert run_python(tmp_path, ("-c", "import httpx; httpx.AsyncClient(verify=False)")).loaded_modules >= EXTRAS
    finished = run_python(tmp_path, ("-c", LEAN))
    assert finished.exit_code == 0, finished.stderr
    assert not finished.loaded_modules & EXTRAS
    assert finished.loaded_modules >= {"httpx", "httpcore._async"}


def test_another_library_can_still_import_them(tmp_path: Path) -> None:
    wanted = "import httpx._main, httpcore._async.http2, h2; httpx.AsyncClient(http2=True, verify=False)"
    finished = run_python(tmp_path, ("-c", f"{LEAN}; {wanted}"))
    assert finished.exit_code == 0, finished.stderr
    assert finished.loaded_modules >= EXTRAS


def test_httpx_that_is_already_imported_is_used_unchanged(tmp_path: Path) -> None:
    check = "assert httpx._main.main is httpx.main"
    finished = run_python(tmp_path, ("-c", f"import httpx; {LEAN}; {check}"))
    assert finished.exit_code == 0, finished.stderr
