"""Architecture rules as functions that take modules and return violations."""

import ast
from collections.abc import Iterable, Iterator, Mapping

from tests.house.lazy_imports import LAZY_LIBRARIES, LAZY_MODULES
from tests.house.source_tree import LAYERS, Import, Module, imports, statements

_OUTSIDE = ("tests", "bench", "examples")
_TERMINAL_LIBRARIES = ("rich", "typer", "click", "prompt_toolkit")
_MODEL_LIBRARIES = ("litellm", "openai")
_LOOP_STARTERS = ("asyncio.run", "asyncio.Runner", "asyncio.get_event_loop", "asyncio.new_event_loop")
_STREAMS = ("sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__")
_ENVIRONMENT = ("os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv")
# It keeps what plugins print away from stdout.
_STDOUT_GUARD = "agent.plugins.guard"
# litellm reads one switch from the environment at import and offers no other way to set it.
_ENVIRONMENT_WRITER = "agent.model.litellm_client"


def upward_imports(source: Module) -> Iterator[str]:
    """Find imports against the direction cli → agent → tooling → patterns, or from outside the product."""
    for imported in imports(source):
        layer = imported.target.partition(".")[0]
        if layer in _OUTSIDE or (layer in LAYERS and LAYERS.index(layer) > LAYERS.index(source.layer)):
            yield f"{source.name}:{imported.line} imports {imported.target}"


def misplaced_libraries(source: Module) -> Iterator[str]:
    """Find litellm outside agent/model and terminal libraries outside cli."""
    for imported in imports(source):
        library = imported.target.partition(".")[0]
        in_model = source.name.startswith("agent.model.")
        if (library in _MODEL_LIBRARIES and not in_model) or (library in _TERMINAL_LIBRARIES and source.layer != "cli"):
            yield f"{source.name}:{imported.line} imports {library}"


def indirect_imports(source: Module, known: frozenset[str]) -> Iterator[str]:
    """Find imports that are relative, use `*`, or take a name from a package instead of its module."""
    for imported in imports(source):
        if imported.level or "*" in imported.names:
            yield f"{source.name}:{imported.line} does not import by full path"
        if imported.target.partition(".")[0] in LAYERS:
            targets = (
                [f"{imported.target}.{name}" for name in imported.names] if _is_package(imported.target, known) else []
            )
            targets = targets or [imported.target]
            yield from (
                f"{source.name}:{imported.line} imports {t}, which is not a module" for t in targets if t not in known
            )


def undeclared_lazy_imports(source: Module) -> Iterator[str]:
    """Find imports inside functions that are not listed; cli may import the product lazily."""
    for imported in imports(source):
        library = imported.target.partition(".")[0]
        if not imported.is_lazy or library in LAZY_LIBRARIES or imported.target in LAZY_MODULES:
            continue
        if source.layer == "cli" and library in LAYERS:
            continue
        yield f"{source.name}:{imported.line} imports {imported.target} inside a function"


def prints(source: Module) -> Iterator[str]:
    """Find output to the terminal outside cli."""
    if source.layer == "cli":
        return
    for node in ast.walk(source.tree) if "print" in source.text or "input" in source.text else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "input"):
            yield f"{source.name}:{node.lineno} calls {node.func.id}()"
    if source.name != _STDOUT_GUARD:
        yield from _dotted_uses(source, _STREAMS)


def loop_starts(source: Module) -> Iterator[str]:
    """Find event loops started outside cli."""
    if source.layer != "cli":
        yield from _dotted_uses(source, _LOOP_STARTERS)


def environment_uses(source: Module) -> Iterator[str]:
    """Find uses of the process environment outside agent/config; one module may write to it."""
    if source.name.startswith("agent.config."):
        return
    if source.name == _ENVIRONMENT_WRITER:
        written = set(_environment_writes(source.tree))
        yield from (use for use in _dotted_uses(source, _ENVIRONMENT) if use not in written)
        return
    yield from _dotted_uses(source, _ENVIRONMENT)


def code_in_package_files(source: Module) -> Iterator[str]:
    """Find __init__ files that contain anything but a docstring."""
    is_docstring = len(source.tree.body) == 1 and ast.get_docstring(source.tree) is not None
    if source.is_package and not is_docstring:
        yield f"{source.name}/__init__.py must contain a docstring and nothing else"


def cycles(sources: Iterable[Module]) -> list[str]:
    """Find modules that import each other at the top level, directly or indirectly."""
    sources = tuple(sources)
    known = frozenset(source.name for source in sources)
    graph = {source.name: sorted(set(module_edges(source, known))) for source in sources}
    return [" → ".join(cycle) for cycle in _find_cycles(graph)]


def module_edges(source: Module, known: frozenset[str], *, include_lazy: bool = False) -> Iterator[str]:
    """Yield the modules a module imports at its top, or with `include_lazy` wherever the import is."""
    for imported in imports(source):
        if (imported.is_lazy or imported.is_typing_only) and not include_lazy:
            continue
        yield from (target for target in _targets(imported, known) if target in known and target != source.name)


def _targets(imported: Import, known: frozenset[str]) -> Iterator[str]:
    inner = [f"{imported.target}.{name}" for name in imported.names]
    yield from (target for target in inner if target in known)
    if not inner or not all(target in known for target in inner):
        yield imported.target


def _find_cycles(graph: Mapping[str, list[str]]) -> Iterator[list[str]]:
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> Iterator[list[str]]:
        if name in trail:
            yield [*trail[trail.index(name) :], name]
        elif name not in done:
            for target in graph.get(name, []):
                yield from visit(target, [*trail, name])
            done.add(name)

    for name in graph:
        yield from visit(name, [])


def _is_package(name: str, known: frozenset[str]) -> bool:
    return any(other.startswith(f"{name}.") for other in known)


def _dotted_uses(source: Module, dotted: tuple[str, ...]) -> Iterator[str]:
    """Find uses of dotted names like `sys.stdout`, also through an alias or a from-import."""
    # Whatever the alias, both parts of the name are written somewhere.
    if not any(
        part in source.text and last in source.text for part, _, last in (name.partition(".") for name in dotted)
    ):
        return
    aliases = {"": ""}
    for node in statements(source.tree):
        if isinstance(node, ast.Import):
            aliases |= {alias.asname: alias.name for alias in node.names if alias.asname}
        if isinstance(node, ast.ImportFrom):
            taken = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (f"{source.name}:{node.lineno} uses {name}" for name in taken if name in dotted)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{aliases.get(node.value.id, node.value.id)}.{node.attr}"
            if name in dotted:
                yield f"{source.name}:{node.lineno} uses {name}"


def _environment_writes(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        is_item = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        is_default = isinstance(node, ast.Attribute) and node.attr == "setdefault"
        if (is_item or is_default) and ast.unparse(node.value) == "os.environ":
            yield f"{_ENVIRONMENT_WRITER}:{node.lineno} uses os.environ"
