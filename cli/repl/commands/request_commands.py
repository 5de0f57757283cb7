"""Commands that send requests: /init, /review, and user-defined ones."""

import asyncio
from collections.abc import Iterable, Sequence

from agent.config.user_commands import UserCommand
from agent.prompts.load import load_prompt
from agent.protocol.commands import Submit
from agent.vocabulary.errors import UsageError
from cli.repl.plan_choice import CANCEL
from cli.repl.repl import Repl
from cli.repl.request_queue import QueuedRequest
from cli.repl.slash_commands import Candidate, SlashCommand
from cli.repl.state import PLAN_MODE

NOTES_FILE = "AGENTS.md"
REVISE = "Revise"
REVISE_QUESTION = f"{NOTES_FILE} exists already. Let the model revise it?"


async def init(repl: Repl, argument: str) -> None:
    """Let the model write AGENTS.md; an existing one is revised only if the user agrees."""
    if (repl.state.cwd / NOTES_FILE).exists():
        answer = await repl.ui.ask(REVISE_QUESTION, (REVISE, CANCEL))
        if answer.casefold() != REVISE.casefold():
            return
    repl.enqueue(QueuedRequest(submit=Submit(prompt=load_prompt("init")), title="/init"))


async def review(repl: Repl, argument: str) -> None:
    """Let the model review changes, without changing anything."""
    from agent.workspace.git_diff import ChangeReader
    from cli.pages.pages import format_size

    if len(argument.split()) > 1:
        raise UsageError("more than one branch or range", "/review, /review BRANCH or /review A..B")
    state = repl.state
    changes = await asyncio.to_thread(lambda: ChangeReader(state.cwd, state.environ).read(argument))
    text = changes.describe()
    repl.enqueue(
        QueuedRequest(
            submit=Submit(prompt=load_prompt("review", command=changes.command), stdin=text),
            title=f"/review {argument}".rstrip(),
            attached=(f"{changes.command} ({format_size(len(text.encode()))}, {text.count(chr(10)):,} lines)",),
            approval_mode=PLAN_MODE,
        )
    )


def complete_branches(repl: Repl, typed: Sequence[str]) -> Iterable[Candidate]:
    """Complete the branches of the repository."""
    from agent.workspace.git_diff import ChangeReader

    if len(typed) > 1:
        return ()
    try:
        return [(name, "") for name in ChangeReader(repl.state.cwd, repl.state.environ).branches()]
    except UsageError:
        return ()


def user_command(loaded: UserCommand) -> SlashCommand:
    """Wrap a command loaded from a user's file."""
    return SlashCommand(
        name=loaded.name,
        help=loaded.help,
        usage=loaded.usage or "[TEXT]",
        run=lambda repl, argument: repl.submit(loaded.expand(argument), title=f"/{loaded.name} {argument}".strip()),
    )
