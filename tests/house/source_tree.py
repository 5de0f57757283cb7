"""The project's parsed source files and their imports."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("patterns", "tooling", "agent", "cli")


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One source file."""

    name: str
    text: str
    tree: ast.Module
    is_package: bool = False

    @property
    def layer(self) -> str:
        return self.name.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One import statement; `target` is the module, `names` what is imported from it."""

    target: str
    names: tuple[str, ...]
    line: int
    level: int = 0
    is_lazy: bool = False
    is_typing_only: bool = False


def module(name: str, source: str) -> Module:
    """Return a module from text, for tests of the checks themselves."""
    return Module(name=name, text=source, tree=ast.parse(source))


def modules() -> tuple[Module, ...]:
    """Return every module of the four layers."""
    return read_modules(ROOT)


@cache
def read_modules(root: Path) -> tuple[Module, ...]:
    """Return every module of the four layers in a checkout."""
    return tuple(_read(path, root) for layer in LAYERS for path in sorted((root / layer).rglob("*.py")))


@cache
def imports(source: Module) -> tuple[Import, ...]:
    """Return every import of a module, also inside functions."""
    return tuple(_imports(source.tree, is_lazy=False, is_typing_only=False))


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield every statement below a node; an expression contains none, and most nodes are in one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, ast.expr):
            yield from statements(child)


def _read(path: Path, root: Path) -> Module:
    parts = path.relative_to(root).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if is_package else parts)
    text = path.read_text()
    return Module(name=name, text=text, tree=ast.parse(text, filename=str(path)), is_package=is_package)


def _imports(node: ast.AST, *, is_lazy: bool, is_typing_only: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        # An expression contains no statement, and most nodes are in one.
        if isinstance(child, ast.expr):
            continue
        match child:
            case ast.Import(names=names):
                targets = [(alias.name, ()) for alias in names]
                level = 0
            case ast.ImportFrom(module=target, names=names, level=level):
                targets = [(target or "", tuple(alias.name for alias in names))]
            case _:
                inside = is_lazy or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
                typing = is_typing_only or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test))
                yield from _imports(child, is_lazy=inside, is_typing_only=typing)
                continue
        for target, imported in targets:
            yield Import(
                target=target,
                names=imported,
                line=child.lineno,
                level=level,
                is_lazy=is_lazy,
                is_typing_only=is_typing_only,
            )
