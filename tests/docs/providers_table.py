"""The table of providers in docs/getting-started.md; `python -m tests.docs.providers_table` updates it."""

from agent.model.providers import PROVIDERS, Provider
from tests.house.source_tree import ROOT

PAGE = ROOT / "docs" / "getting-started.md"
BEGIN, END = "<!-- providers: begin -->", "<!-- providers: end -->"


def table() -> str:
    """Return the providers with a direct client as Markdown."""
    return "\n".join(("| provider | also written | key | address |", "|---|---|---|---|", *map(_row, PROVIDERS)))


def update_table(page: str) -> str:
    """Return the page with its table replaced."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def _row(row: Provider) -> str:
    keys = _format_names(row.key_variables) or "none needed"
    return f"| `{row.name}` | {_format_names(row.aliases)} | {keys} | {row.base_url} |"


def _format_names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PAGE.write_text(update_table(PAGE.read_text()))
