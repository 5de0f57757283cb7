"""The table of slash commands in docs/prompt.md; `python -m tests.docs.prompt_commands` updates it."""

from cli.repl.commands.builtin import COMMANDS
from cli.repl.slash_commands import SlashCommand
from tests.house.source_tree import ROOT

PAGE = ROOT / "docs" / "prompt.md"
BEGIN, END = "<!-- commands: begin -->", "<!-- commands: end -->"


def table() -> str:
    """Return the slash commands as Markdown."""
    return "\n".join(("| command | does |", "|---|---|", *map(_row, COMMANDS)))


def update_table(page: str) -> str:
    """Return the page with its table replaced."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{table()}\n{END}{tail}"


def _row(command: SlashCommand) -> str:
    usage = f"/{command.name} {command.usage}".strip().replace("|", "\\|")
    return f"| `{usage}` | {command.help} |"


if __name__ == "__main__":
    PAGE.write_text(update_table(PAGE.read_text()))
