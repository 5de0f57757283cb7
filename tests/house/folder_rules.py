"""Rules for folders: their size, their layering, and modules that are too small to stand alone."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tests.house.layer_rules import module_edges
from tests.house.source_tree import Module

MAX_MODULES = 20
SMALL_LINES = 60
# Small modules that stay on their own, although only one module imports them.
SMALL_MODULES = {
    "agent.service.dbos_engine.private_api": "the only file that uses DBOS beyond its public interface",
    "agent.service.dbos_engine.slots": "shared between threads, and tested alone",
    "agent.service.task_runs": "reads logs; its importer drives processes",
    "agent.backends.table": "the table of backends, which contributors look for",
    "agent.backends.host": "a backend, which the table of backends names",
    "agent.backends.egress.relay": "the outer half of the relay, next to its inner half",
    "cli.completion.model_values": "one kind of candidates, looked up by name like the others",
    "tooling.contract.files": "a port for tool authors",
    "tooling.contract.jobs": "a port for tool authors",
    "tooling.files.workspace_files": "the adapter of a port",
}
# In these folders every module is an entry of a table: one tool, one command.
TABLE_FOLDERS = ("tooling.tools", "cli.commands")


def crowded_folders(sources: Iterable[Module]) -> Iterator[str]:
    """Find folders with more modules than a reader can survey."""
    counts = Counter(source.name.rpartition(".")[0] for source in sources if not source.is_package)
    yield from (f"{folder} has {count} modules" for folder, count in counts.items() if count > MAX_MODULES)


def folder_cycles(sources: Iterable[Module]) -> Iterator[str]:
    """Find children of a folder, modules or folders, that import each other directly or indirectly.

    Imports inside functions do not count: they are listed with their reasons.
    """
    sources = tuple(sources)
    known = frozenset(source.name for source in sources)
    children: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for source in sources:
        for target in module_edges(source, known):
            folder, importer, imported = _siblings(source.name, target)
            if importer and imported:
                children[folder][importer].add(imported)
    for folder, graph in sorted(children.items()):
        for child in sorted(graph):
            if child in _reachable(graph, child):
                yield f"{folder}: {child} imports itself through its siblings"


def small_modules(sources: Iterable[Module], lines: Mapping[str, int]) -> Iterator[str]:
    """Find short modules that a single module imports at its top: they belong there."""
    sources = tuple(source for source in sources if not source.is_package)
    known = frozenset(source.name for source in sources)
    importers, eager = defaultdict(set), set()
    for source in sources:
        eager.update(module_edges(source, known))
        for target in module_edges(source, known, include_lazy=True):
            importers[target].add(source.name)
    for source in sources:
        name = source.name
        is_entry = name.startswith(TABLE_FOLDERS) or name in SMALL_MODULES
        if lines[name] < SMALL_LINES and len(importers[name]) == 1 and name in eager and not is_entry:
            yield f"{name} ({lines[name]} lines) belongs into {next(iter(importers[name]))}"


def _siblings(importer: str, imported: str) -> tuple[str, str, str]:
    """Return the folder that contains both modules, and which of its children each belongs to."""
    left, right = importer.split("."), imported.split(".")
    depth = 0
    while depth < min(len(left), len(right)) and left[depth] == right[depth]:
        depth += 1
    return ".".join(left[:depth]), "".join(left[depth : depth + 1]), "".join(right[depth : depth + 1])


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    pending = [start]
    while pending:
        fresh = graph.get(pending.pop(), set()) - reached
        reached |= fresh
        pending += fresh
    return reached
