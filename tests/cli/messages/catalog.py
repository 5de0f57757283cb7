"""cli/messages/en.toml, collected from the source; `python -m tests.cli.messages.catalog` updates it."""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from jinja2 import Environment, nodes

from cli.messages.translate import SHIPPED
from tests.house.source_tree import ROOT

FILE = SHIPPED / "en.toml"
TEMPLATES = ROOT / "agent" / "api" / "page" / "templates"
_HEADER = """\
# Every message of the program, by the module that says it. A translation is a file LANGUAGE.toml beside this one, or
# in the `messages` folder of your settings, with lines such as "there is nothing to resume" = "…". Keep the names in
# braces.
# The texts of the page of `agent serve` are those under [page]; a translation has them in its table [page].
# Generated from the source: do not edit.
"""
# Classes whose first arguments are shown to the user; their names end like this.
_ERRORS = re.compile(r"(Error|Busy|Finished|Cancelled|Early|NotFound|Forbidden)$")
_WORDS = re.compile(r"[A-Za-z]{2,}[^{}]* [^{}]*[A-Za-z]{2,}")
_PLACEHOLDER = re.compile(r"\{\w*\}")


@cache
def messages() -> dict[str, list[str]]:
    """Return the messages of each module, in their order."""
    found: dict[str, list[str]] = {}
    for root in ("cli", "agent"):
        for path in sorted((ROOT / root).rglob("*.py")):
            texts = list(dict.fromkeys(_messages_of(path, is_shown=root == "cli")))
            if texts:
                found[".".join(path.relative_to(ROOT).with_suffix("").parts)] = texts
    return found


@cache
def page_texts() -> dict[str, list[str]]:
    """Return what each template and module of the page gives to `t`, in their order."""
    found = {f"page.{path.stem}": _template_texts(path) for path in sorted(TEMPLATES.glob("*.html"))}
    found |= {f"page.{path.stem}": _module_texts(path) for path in sorted(TEMPLATES.parent.glob("*.py"))}
    return {name: list(dict.fromkeys(texts)) for name, texts in found.items() if texts}


def render() -> str:
    """Return the catalogue as TOML."""
    parts = {**messages(), **page_texts()}
    blocks = (f"[{name}]\nmessages = [\n{_lines(texts)}]\n" for name, texts in parts.items())
    return _HEADER + "\n" + "\n".join(blocks)


def _template_texts(path: Path) -> list[str]:
    calls = Environment().parse(path.read_text("utf-8")).find_all(nodes.Call)
    named = (call for call in calls if isinstance(call.node, nodes.Name) and call.node.name == "t")
    return [call.args[0].as_const() for call in named]


def _module_texts(path: Path) -> list[str]:
    calls = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
    named = (call for call in calls if getattr(call.func, "id", getattr(call.func, "attr", "")) == "t")
    return [ast.literal_eval(call.args[0]) for call in named]


def _lines(texts: list[str]) -> str:
    return "".join(f"    {_quote(text)},\n" for text in texts)


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in escaped) + '"'


def _messages_of(path: Path, *, is_shown: bool) -> Iterator[str]:
    """Yield the texts of a module that is shown to users, or the errors and constants of another one."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in _candidates(tree) if is_shown else _errors_in(tree):
        text = _template(node)
        # The help shows a docstring without the indentation of the source.
        text = inspect.cleandoc(text) if id(node) in docstrings else text
        if text and _is_message(text):
            yield text


def _candidates(tree: ast.Module) -> Iterator[ast.expr]:
    skipped = set(_not_shown(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in skipped:
            yield node


def _not_shown(tree: ast.Module) -> Iterator[int]:
    """Yield the ids of docstrings, except those of commands, and of annotations."""
    shown = {id(node.body[0]) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _is_command(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and id(node) not in shown:
            yield id(node.value)
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(annotation, ast.expr):
                # `Annotated[bool, typer.Option(help="…")]` is shown in the help.
                inside = annotation.elts[1:] if isinstance(annotation, ast.Tuple) else []
                yield from (
                    id(part) for part in ast.walk(annotation) if part not in inside and not _in_call(annotation, part)
                )


def _is_command(node: ast.FunctionDef) -> bool:
    """Whether the docstring of a function is the help of a command."""
    return any(ast.unparse(decorator).startswith("app.command") for decorator in node.decorator_list)


def _in_call(annotation: ast.expr, part: ast.AST) -> bool:
    calls = (node for node in ast.walk(annotation) if isinstance(node, ast.Call))
    return any(part is inner for call in calls for inner in ast.walk(call))


def _errors_in(tree: ast.Module) -> Iterator[ast.expr]:
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and _ERRORS.search(node.func.id):
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                yield from _texts_of(argument, constants)


def _texts_of(node: ast.expr, constants: dict[str, ast.expr]) -> Iterator[ast.expr]:
    """Yield the texts an expression may be: itself, the branches of a choice, a constant."""
    if isinstance(node, ast.Constant | ast.JoinedStr):
        yield node
    elif isinstance(node, ast.IfExp):
        yield from _texts_of(node.body, constants)
        yield from _texts_of(node.orelse, constants)
    elif isinstance(node, ast.Name) and node.id in constants:
        yield from _texts_of(constants[node.id], {})


def _template(node: ast.expr) -> str:
    """Return a text with a name for each of its variable parts."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    assert isinstance(node, ast.JoinedStr)
    text, names = "", list[str]()
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            name = _name(part.value)
            while name in names:
                name += "2"
            names.append(name)
            text += f"{{{name}}}"
        elif isinstance(part, ast.Constant):
            text += str(part.value)
    return text


def _name(value: ast.expr) -> str:
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_").lower() or "value"
        case ast.Call(args=[first, *_]):
            return _name(first)
        case ast.Call(func=ast.Attribute(value=owner)):
            return _name(owner)
    return "value"


def _is_message(text: str) -> bool:
    return bool(_WORDS.search(_PLACEHOLDER.sub("{}", text).strip())) and "\x1b" not in text


if __name__ == "__main__":
    FILE.write_text(render(), "utf-8")
