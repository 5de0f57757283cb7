"""The tool registry and tool plugins."""

import importlib.metadata
import itertools
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.growth import cpu_seconds
from tests.tooling.stored_specs import describe_specs
from tests.tooling.tool_harness import NoUser
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.context import ExecCtx
from tooling.contract.result import ToolResult
from tooling.contract.tool import Tool, ToolCommand, ToolServices, ToolSpec
from tooling.entry_points import entry_points
from tooling.jobs import BackgroundJobs
from tooling.registry import NAME_TAKEN, STORED_SPECS, TOOLS, RegistrationError, ToolRegistry, load_tools
from tooling.tools.read_file import ReadFile
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


def install_plugin(site: Path, distribution: str, source: str, *points: str) -> None:
    (site / f"plugin_{distribution}.py").write_text(source)
    folder = site / f"{distribution}-1.0.dist-info"
    folder.mkdir()
    lines = "\n".join(points)
    (folder / "entry_points.txt").write_text(f"[console_scripts]\nx = y:z\n\n[windlass.tools]\n{lines}\n")


def test_built_in_tools_have_distinct_names_and_openai_schemas() -> None:
    assert len({tool.spec.name for tool in TOOLS}) == len(TOOLS)
    assert RunCommand.spec.to_openai_tool()["type"] == "function"


def test_the_stored_specs_are_those_of_the_classes_and_none_has_slash_commands() -> None:
    message = "run: python -m tests.tooling.stored_specs"
    assert STORED_SPECS.read_text("utf-8") == describe_specs(), message
    for tool in TOOLS:
        loaded = tool.load()
        assert (tool.spec, loaded.commands) == (loaded.spec, ()), message


def test_only_reading_tools_run_in_parallel() -> None:
    assert [tool.spec.name for tool in TOOLS if tool.spec.parallelizable] == [
        "read_file",
        "list_directory",
        "find_files",
        "search_text",
        "search_web",
        "fetch_page",
        "send_file",
    ]


def test_tools_of_plugins_come_last_and_one_with_a_taken_name_becomes_a_warning() -> None:
    class Shout(ReadFile):
        spec = replace(ReadFile.spec, name="shout")

    registry, warnings = load_tools(SERVICES, [Shout, RunCommand])
    assert registry.names[-1] == "shout"
    assert [NAME_TAKEN in warning for warning in warnings] == [True]


def test_an_invalid_tool_is_rejected_and_the_registry_stays_usable() -> None:
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
    with pytest.raises(RegistrationError, match=NAME_TAKEN):
        registry.register(RunCommand(SERVICES))
    assert registry.names == ("run_command",)


def test_finding_entry_points_is_faster_than_importlib_metadata() -> None:
    # What was found on a path is kept, so that every attempt needs a path of its own.
    unseen = (f"/nonexistent/{number}" for number in itertools.count())
    ours = cpu_seconds(lambda: list(entry_points([*sys.path, next(unseen)])))
    assert ours < cpu_seconds(importlib.metadata.entry_points)


def test_the_first_copy_of_a_distribution_wins(tmp_path: Path) -> None:
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
        (ToolCommand(name="two words", help="x"), "no valid name"),
        (ToolCommand(name="/slash", help="x"), "no valid name"),
        (ToolCommand(name="", help="x"), "no valid name"),
        (ToolCommand(name="mute", help=""), "no help"),
        ("shout", "no valid name"),
    ],
)
def test_a_command_without_a_valid_name_or_help_is_rejected(command: ToolCommand, problem: str) -> None:
    with pytest.raises(RegistrationError, match=problem):
        ToolRegistry([shout_tool(command)])


def test_a_duplicate_command_is_rejected() -> None:
    command = ToolCommand(name="shout", help="Shout.")
    with pytest.raises(RegistrationError, match="a command /shout already exists"):
        ToolRegistry([shout_tool(command, command)])
