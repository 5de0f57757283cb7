"""Prompts of MCP servers as slash commands: /mcp__SERVER__PROMPT."""

from collections.abc import Awaitable, Mapping, Sequence

from agent.mcp_setup import fetch_prompt, known_prompts
from agent.protocol.commands import Submit
from agent.vocabulary.errors import AgentError, UsageError
from cli.repl.commands.session_commands import split_words
from cli.repl.repl import Repl
from cli.repl.request_queue import QueuedRequest
from cli.repl.slash_commands import SlashCommand
from cli.screen.sanitize import sanitize
from tooling.contract.result import ToolError
from tooling.mcp.listing import OfferedPrompt, PromptArgument, full_name
from tooling.mcp.servers import McpServer

# Contains the server's name, so that its tools are offered to the request.
REQUEST = "(a prompt of the MCP server {server})\n{text}"


def prompt_commands(environ: Mapping[str, str]) -> list[SlashCommand]:
    """Return a command for each prompt that the user's servers offered last."""
    try:
        return [_command(server, prompt) for server, prompt in known_prompts(environ)]
    except AgentError:
        # `agent doctor` and every run report the problem of the file.
        return []


def _command(server: McpServer, prompt: OfferedPrompt) -> SlashCommand:
    name = full_name(server.name, prompt.name)

    def run(repl: Repl, argument: str) -> Awaitable[None]:
        return _send(repl, server, prompt, assign_words(prompt.arguments, split_words(argument)))

    words = [word.name.upper() if word.is_required else f"[{word.name.upper()}]" for word in prompt.arguments]
    return SlashCommand(name=name, help=prompt.description or prompt.name, usage=" ".join(words), run=run)


def assign_words(arguments: Sequence[PromptArgument], words: Sequence[str]) -> dict[str, str]:
    """Return the typed words by argument, in order; the last argument gets the rest. Raises UsageError."""
    if len(words) > len(arguments) and not arguments:
        raise UsageError("this prompt takes no arguments")
    given = [*words[: len(arguments) - 1], " ".join(words[len(arguments) - 1 :])] if arguments else []
    values = {argument.name: word for argument, word in zip(arguments, given, strict=False) if word}
    if missing := [argument.name for argument in arguments if argument.is_required and argument.name not in values]:
        raise UsageError(f"the prompt needs {missing[0]}")
    return values


async def _send(repl: Repl, server: McpServer, prompt: OfferedPrompt, arguments: Mapping[str, str]) -> None:
    """Fetch the text, show it, and send it as a request; files mentioned in it are not attached."""
    try:
        text = await fetch_prompt(server, prompt.name, arguments, repl.state.environ, repl.state.cwd)
    except ToolError as error:
        raise AgentError(str(error)) from error
    request = REQUEST.format(server=server.name, text=sanitize(text))
    repl.print_line(request)
    repl.enqueue(QueuedRequest(submit=Submit(prompt=request), title=f"/{full_name(server.name, prompt.name)}"))
