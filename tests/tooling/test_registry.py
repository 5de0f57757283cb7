"""Tools by name, and those that other packages bring along."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tooling.tool_harness import NoUser
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.context import ExecCtx
from tooling.contract.result import ToolResult
from tooling.contract.tool import Tool, ToolCommand, ToolServices, ToolSpec
from tooling.entry_points import entry_points
from tooling.jobs import BackgroundJobs
from tooling.registry import TOOLS, RegistrationError, ToolRegistry, load_tools
from tooling.tools.run_command import RunCommand

PLUGIN = """
from dataclasses import dataclass
from tooling.contract.result import ToolResult
from tooling.contract.json_codec import schema_of
from tooling.contract.tool import Tool, ToolSpec

@dataclass(frozen=True, slots=True, kw_only=True)
class Params:
    word: str

class Shout(Tool[Params]):
    params = Params
    spec = ToolSpec(name="{name}", description="Shout.", parameters=schema_of(Params))

    async def run(self, params, ctx):
        return ToolResult(params.word.upper())

not_a_tool = 1
"""


class NoCommandRunner:
    async def run(self, request: CommandRequest) -> CommandOutput:
        raise AssertionError


SERVICES = ToolServices(runner=NoCommandRunner(), asker=NoUser(), jobs=BackgroundJobs(NoCommandRunner()))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("plugin_"):
            del sys.modules[name]


def install(site: Path, distribution: str, source: str, *points: str) -> None:
    (site / f"plugin_{distribution}.py").write_text(source)
    folder = site / f"{distribution}-1.0.dist-info"
    folder.mkdir()
    lines = "\n".join(points)
    (folder / "entry_points.txt").write_text(f"[console_scripts]\nx = y:z\n\n[windlass.tools]\n{lines}\n")


def test_the_first_set_is_readable() -> None:
    assert len({tool.spec.name for tool in TOOLS}) == len(TOOLS)
    assert RunCommand.spec.to_openai_tool()["type"] == "function"


def test_only_reading_tools_may_overlap() -> None:
    assert [tool.spec.name for tool in TOOLS if tool.spec.parallelizable] == [
        "read_file",
        "list_directory",
        "find_files",
        "search_text",
        "search_web",
        "fetch_page",
    ]


async def test_an_installed_package_brings_its_tool(site: Path) -> None:
    install(site, "shout", PLUGIN.format(name="shout"), "shout = plugin_shout:Shout")
    registry, warnings = load_tools(SERVICES, paths=[str(site)])
    assert (registry.names[-1], warnings) == ("shout", ())


def test_what_a_package_breaks_is_told_and_the_rest_loads(site: Path) -> None:
    install(site, "broken", "raise RuntimeError('at import')", "a = plugin_broken:Tool")
    install(site, "gone", "", "b = plugin_gone:Missing", "c = no_such_module:Tool")
    install(site, "number", PLUGIN.format(name="x"), "d = plugin_number:not_a_tool")
    install(site, "twice", PLUGIN.format(name="run_command"), "e = plugin_twice:Shout")
    install(site, "good", PLUGIN.format(name="shout"), "f = plugin_good:Shout")
    registry, warnings = load_tools(SERVICES, paths=[str(site)])
    assert registry.names[-1] == "shout"
    assert [warning.split(" was skipped: ")[0] for warning in warnings] == [
        "tool plugin a of broken",
        "tool plugin b of gone",
        "tool plugin c of gone",
        "tool plugin d of number",
        "tool plugin e of twice",
    ]
    assert "already a tool of this name" in warnings[-1]


def test_bad_tools_are_refused_and_the_registry_goes_on() -> None:
    registry = ToolRegistry()

    class Bad(Tool[object]):
        async def run(self, params: object, ctx: ExecCtx) -> ToolResult:
            raise AssertionError

    class BadName(Bad):
        spec = ToolSpec(name="two words", description="", parameters={"type": "object"})

    class BadSchema(Bad):
        spec = ToolSpec(name="bad", description="", parameters={"type": "string"})

    for tool in (Bad, BadName, BadSchema):
        with pytest.raises(RegistrationError):
            registry.register(tool(SERVICES))
    registry.register(RunCommand(SERVICES))
    with pytest.raises(RegistrationError, match="already"):
        registry.register(RunCommand(SERVICES))
    assert registry.names == ("run_command",)


def test_looking_for_plugins_costs_next_to_nothing() -> None:
    took = []
    for _ in range(5):
        started = time.thread_time()
        list(entry_points(sys.path))
        took.append(time.thread_time() - started)
    assert min(took) < 0.02


def test_the_first_of_two_installations_wins(tmp_path: Path) -> None:
    for number in (1, 2):
        folder = tmp_path / str(number) / f"thing-{number}.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "entry_points.txt").write_text(f"[windlass.tools]\nt = m{number}:T\n")
    found = list(entry_points([str(tmp_path / "1"), str(tmp_path / "2"), str(tmp_path / "none")]))
    assert [point.target for point in found] == ["m1:T"]


def shout_tool(*commands: ToolCommand) -> Tool[object]:
    class Shout(RunCommand):
        spec = ToolSpec(name="shout", description="Shout.", parameters={"type": "object"})

    Shout.commands = commands
    return Shout(SERVICES)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (ToolCommand(name="two words", help="x"), "no usable name"),
        (ToolCommand(name="/slash", help="x"), "no usable name"),
        (ToolCommand(name="", help="x"), "no usable name"),
        (ToolCommand(name="mute", help=""), "no help"),
        ("shout", "no usable name"),
    ],
)
def test_a_command_without_a_name_or_help_is_refused(command: ToolCommand, problem: str) -> None:
    with pytest.raises(RegistrationError, match=problem):
        ToolRegistry([shout_tool(command)])


def test_a_command_that_another_tool_has_is_refused() -> None:
    command = ToolCommand(name="shout", help="Shout.")
    with pytest.raises(RegistrationError, match="already a command /shout"):
        ToolRegistry([shout_tool(command, command)])
