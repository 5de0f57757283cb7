"""Loading plugins: from packages and the user's folder, and what is done about broken ones."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agent.plugins import load
from agent.plugins.load import PluginSet, load_plugins
from tests.tooling.test_registry import PLUGIN, SERVICES, install_plugin
from tooling.contract.context import ExecCtx
from tooling.contract.json_codec import decode
from tooling.registry import NAME_TAKEN

TOOL = '''
from tooling.contract.function_tool import tool

@tool(effect="note")
async def {name}(word: str = "hi") -> str:
    """Say it."""
    print("said aloud")
    return word.upper()
'''
CLASS = """
from agent.plugins.plugin import Plugin

class Mine(Plugin):
    tools = ({tool},)
    tool_prefix = "{prefix}"
"""


@pytest.fixture(autouse=True)
def clean_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before, stdout = set(sys.modules), sys.stdout
    monkeypatch.setattr(load, "LOAD_TIMEOUT_S", 0.5)
    yield
    sys.stdout = stdout
    for name in set(sys.modules) - before:
        if name.startswith(("plugin_", "windlass_plugin_")):
            del sys.modules[name]


class Plugins:
    """The folder of the user's plugins, and a site with packages."""

    def __init__(self, root: Path) -> None:
        self.folder, self.site = root / "plugins", root / "site"
        self.site.mkdir()

    def write(self, name: str, source: str, file: str = "plugin.py") -> Path:
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / name / file).write_text(source)
        return self.folder / name

    def load(self, config: Mapping[str, Mapping[str, object]] | None = None) -> PluginSet:
        return load_plugins(self.folder, config or {}, paths=[str(self.site)])


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    made = Plugins(tmp_path)
    monkeypatch.syspath_prepend(made.site)
    return made


def names(found: PluginSet) -> list[str]:
    return [tool.spec.name for tool in found.tools]


def reasons(found: PluginSet) -> dict[str, str]:
    return {problem.name: problem.reason for problem in found.problems}


def test_a_folder_with_decorated_functions_is_a_plugin(plugins: Plugins) -> None:
    plugins.write("shout", TOOL.format(name="shout"))
    found = plugins.load()
    assert (names(found), found.problems) == (["shout"], ())


def test_a_plugin_may_have_a_class_a_prefix_and_modules_of_its_own(plugins: Plugins) -> None:
    plugins.write("my-notes", TOOL.format(name="shout"), "words.py")
    plugins.write("my-notes", "from .words import shout\n" + CLASS.format(tool="shout", prefix="notes_"))
    assert names(plugins.load()) == ["notes_shout"]


def test_packages_bring_plugins_and_single_tools(plugins: Plugins) -> None:
    install_plugin(plugins.site, "one", PLUGIN.format(name="one"), "a = plugin_one:Shout")
    source = TOOL.format(name="two") + CLASS.format(tool="two", prefix="")
    (plugins.site / "plugin_two.py").write_text(source)
    (plugins.site / "two-1.0.dist-info").mkdir()
    (plugins.site / "two-1.0.dist-info" / "entry_points.txt").write_text("[windlass.plugins]\nb = plugin_two:Mine\n")
    assert sorted(names(plugins.load())) == ["one", "two"]


def test_broken_plugins_are_skipped_and_named_and_the_others_load(plugins: Plugins) -> None:
    plugins.write("raises", "raise RuntimeError('at import')")
    plugins.write("exits", "raise SystemExit(3)")
    plugins.write("hangs", "import threading; threading.Event().wait()")
    plugins.write("collides", TOOL.format(name="read_file"))
    plugins.write("empty", "x = 1")
    plugins.write("no-file", "", "other.py")
    plugins.write("no-doc", "from tooling.contract.function_tool import tool\n@tool\nasync def f(): pass\n")
    plugins.write("not a name", TOOL.format(name="odd"))
    plugins.write("z-good", TOOL.format(name="good"))
    install_plugin(plugins.site, "gone", "", "lost = plugin_gone:Missing", "number = plugin_gone:__name__")
    found = plugins.load()
    assert names(found) == ["good"]
    assert reasons(found) == {
        "raises": "RuntimeError: at import",
        "exits": "SystemExit: 3",
        "hangs": "it took longer than 0.5 s",
        "collides": f"read_file: {NAME_TAKEN} (from Windlass)",
        "empty": load.NO_PLUGIN,
        "no-file": f"{plugins.folder}/no-file has no plugin.py",
        "no-doc": "NotATool: f has no docstring, which tells the model what it does",
        "not a name": "its folder's name may have only letters, digits, '-' and '_'",
        "lost": "AttributeError: module 'plugin_gone' has no attribute 'Missing'",
        "number": load.NOT_A_PLUGIN,
    }


def test_of_two_plugins_with_the_same_tool_the_second_is_skipped(plugins: Plugins) -> None:
    plugins.write("a", TOOL.format(name="shout"))
    plugins.write("b", TOOL.format(name="shout"))
    found = plugins.load()
    assert (names(found), reasons(found)) == (["shout"], {"b": f"shout: {NAME_TAKEN} (from a)"})


def test_a_plugin_that_others_can_change_is_not_loaded(plugins: Plugins) -> None:
    folder = plugins.write("open", TOOL.format(name="shout"))
    (folder / "plugin.py").chmod(0o666)
    assert reasons(plugins.load()) == {"open": load.FOREIGN.format(path=folder / "plugin.py")}


def test_a_plugin_can_be_switched_off(plugins: Plugins) -> None:
    plugins.write("shout", TOOL.format(name="shout"))
    assert plugins.load({"shout": {"enabled": False}}) == PluginSet()


async def test_what_a_plugin_prints_never_reaches_stdout(plugins: Plugins, capsys: pytest.CaptureFixture[str]) -> None:
    plugins.write(
        "loud", "print('at import')\nimport sys\nsys.stdout.buffer.write(b'raw')\n" + TOOL.format(name="shout")
    )
    found = plugins.load()
    assert [problem.is_skipped for problem in found.problems] == [False]
    assert "'at import'" in reasons(found)["loud"]
    tool = found.tools[0](SERVICES)
    result = await tool.run(decode(tool.params, {}), ExecCtx.__new__(ExecCtx))
    assert result.content == "HI\nsaid aloud"
    print("our own")
    assert capsys.readouterr().out == "our own\n"
