"""The tools find_files and search_text, with and without ripgrep."""

from pathlib import Path

import pytest

from tests.programs import require
from tests.tooling.tool_harness import NoUser, ToolHarness
from tooling.approvals.policy import PolicyApprover
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.result import ToolResult
from tooling.contract.tool import ToolServices
from tooling.finish import OutputFinisher
from tooling.invoke import Invoker
from tooling.jobs import BackgroundJobs
from tooling.permission import PermissionInterceptor
from tooling.registry import ToolRegistry
from tooling.safety.action_judge import ActionJudge
from tooling.safety.secrets.redact import Redactor
from tooling.tools.find_files import FindFiles
from tooling.tools.search_text import SearchText


class NoPrograms:
    """A command runner on a machine without any programs."""

    async def run(self, request: CommandRequest) -> CommandOutput:
        raise FileNotFoundError(2, "No such file or directory", request.argv[0])


class SearchHarness(ToolHarness):
    """A tool harness with or without ripgrep."""

    def __init__(self, folder: Path, *, has_ripgrep: bool) -> None:
        super().__init__(folder)
        self.has_ripgrep = has_ripgrep
        services = ToolServices(runner=NoPrograms(), asker=NoUser(), jobs=BackgroundJobs(NoPrograms()))
        registry = ToolRegistry((FindFiles(services), SearchText(services)))
        finisher = OutputFinisher(Redactor())
        self._invoker = Invoker(
            registry=registry,
            interceptors=(PermissionInterceptor(ActionJudge(), PolicyApprover()),),
            finisher=finisher,
        )

    async def call(self, tool: str, **args: object) -> ToolResult:
        if self.has_ripgrep:
            return await super().call(tool, **args)
        return await self._invoker.invoke(tool, args, self.ctx())


@pytest.fixture(params=["ripgrep", "walker"])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> SearchHarness:
    if request.param == "ripgrep":
        require("rg")
    harness = SearchHarness(tmp_path, has_ripgrep=request.param == "ripgrep")
    harness.write("src/app.py", "import os\n\ndef main():\n    return os.name\n")
    harness.write("src/deep/more.py", "MAIN = 1\n")
    harness.write("notes.txt", "main point\nother\n")
    harness.write("bin.dat", b"main\0main\n")
    harness.write(".git/config", "main")
    harness.write("node_modules/x/index.js", "main")
    harness.write(".env", "main=1")
    return harness


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("*.py", ".", ["src/app.py", "src/deep/more.py"]),
        ("src/*.py", ".", ["src/app.py"]),
        ("src/**/*.py", ".", ["src/app.py", "src/deep/more.py"]),
        ("**/more.py", ".", ["src/deep/more.py"]),
        ("*.{txt,dat}", ".", ["bin.dat", "notes.txt"]),
        ("[!n]*.txt", ".", ["No files match '[!n]*.txt' in '.'."]),
        ("*.py", "src/deep", ["src/deep/more.py"]),
        ("config", ".", ["No files match 'config' in '.'."]),
    ],
)
async def test_files_are_found_by_glob(harness: SearchHarness, pattern: str, path: str, found: list[str]) -> None:
    assert (await harness.call("find_files", pattern=pattern, path=path)).content.splitlines() == found


async def test_a_pattern_cannot_leave_the_workspace(harness: SearchHarness) -> None:
    assert (await harness.call("find_files", pattern="../*")).exit_code == 1
    assert (await harness.call("find_files", pattern="*", path="..")).meta.status == "blocked"


async def test_a_long_list_of_files_is_truncated_with_a_notice(harness: SearchHarness) -> None:
    for number in range(300):
        harness.write(f"many/{number:03}.log", "")
    lines = (await harness.call("find_files", pattern="*.log")).content.splitlines()
    assert (len(lines), lines[0]) == (201, "many/000.log")
    assert lines[-1].startswith("[200 of 300 files;")


async def test_matches_have_path_and_line_number(harness: SearchHarness) -> None:
    found = await harness.call("search_text", pattern="main")
    assert found.content == "notes.txt:1: main point\nsrc/app.py:3: def main():"


async def test_case_glob_path_and_context_are_respected(harness: SearchHarness) -> None:
    found = await harness.call("search_text", pattern="main", ignore_case=True, glob="*.py", path="src", context=1)
    assert found.content == (
        "src/app.py-2- \nsrc/app.py:3: def main():\nsrc/app.py-4-     return os.name\nsrc/deep/more.py:1: MAIN = 1"
    )


async def test_a_single_file_can_be_searched(harness: SearchHarness) -> None:
    assert (await harness.call("search_text", pattern="o.her", path="notes.txt")).content == "notes.txt:2: other"


async def test_no_matches_is_a_result_and_a_failed_search_an_error(harness: SearchHarness) -> None:
    nothing = await harness.call("search_text", pattern="not there")
    broken = await harness.call("search_text", pattern="(")
    missing = await harness.call("search_text", pattern="x", path="nowhere")
    assert (nothing.exit_code, nothing.content) == (0, "No matches for 'not there' in '.'.")
    assert (broken.exit_code, broken.meta.status) == (1, "error")
    assert "The search failed" in broken.content
    assert missing.exit_code == 1


@pytest.mark.parametrize("pattern", ["$(touch pwned)", "`touch pwned`", "'; touch pwned; '", "--pre=touch", "-e", "--"])
async def test_a_pattern_is_never_run_or_read_as_an_option(harness: SearchHarness, pattern: str) -> None:
    before = sorted(str(path) for path in harness.root.rglob("*"))
    assert "failed" not in (await harness.call("search_text", pattern=pattern, path="notes.txt")).content
    assert sorted(str(path) for path in harness.root.rglob("*")) == before


async def test_links_out_of_the_workspace_are_not_followed(harness: SearchHarness, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("main secret")
    (harness.root / "out").symlink_to(tmp_path)
    (harness.root / "direct.txt").symlink_to(tmp_path / "outside.txt")
    assert "secret" not in (await harness.call("search_text", pattern="main")).content
    assert (await harness.call("search_text", pattern="main", path="direct.txt")).meta.status == "blocked"
    assert "outside" not in (await harness.call("find_files", pattern="*.txt")).content


async def test_many_matches_are_truncated_with_a_notice(harness: SearchHarness) -> None:
    harness.write("big.txt", "needle\n" * 1000)
    lines = (await harness.call("search_text", pattern="needle")).content.splitlines()
    assert (len(lines), lines[-1][:16]) == (201, "[200 of 1000 mat")


async def test_the_full_output_of_an_earlier_call_can_be_read_searched_and_listed(harness: SearchHarness) -> None:
    harness.outputs.mkdir()
    output = harness.outputs / "step1-1-call1.txt"
    output.write_text("".join(f"{n} {'ERROR' if n % 1000 == 0 else 'ok'}\n" for n in range(1, 3001)))
    found = await harness.call("search_text", pattern="ERROR", path=str(output), context=1)
    assert found.content.splitlines()[:3] == [
        f"{output}-999- 999 ok",
        f"{output}:1000: 1000 ERROR",
        f"{output}-1001- 1001 ok",
    ]
    assert "2000 ERROR" in (await harness.call("search_text", pattern="ERROR", path=str(harness.outputs))).content
    assert (await harness.call("find_files", pattern="*.txt", path=str(harness.outputs))).content == str(output)
