"""An ordinary server, built with the SDK: tools, a resource, a prompt, questions to the user and to the model."""

import asyncio
import os
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("notes")


class Name(BaseModel):
    """What the user is asked for."""

    name: str


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def environment() -> str:
    """Return the names of the environment variables."""
    return " ".join(sorted(os.environ))


@server.tool()
def write_note(path: str, text: str) -> str:
    """Write a file."""
    Path(path).write_text(text)
    return "written"


@server.tool()
async def count(context: Context, to: int) -> str:
    """Count, and report progress."""
    for number in range(1, to + 1):
        await context.report_progress(number, to, "counting")
        await asyncio.sleep(0)
    return f"counted to {to}"


@server.tool()
async def greet(context: Context) -> str:
    """Ask the user for a name."""
    answer = await context.elicit("Who are you?", Name)
    return f"Hello {answer.data.name}" if answer.action == "accept" else f"no name: {answer.action}"


@server.resource("notes://today")
def today() -> str:
    """What is noted for today."""
    return "buy milk"


@server.prompt()
def review(topic: str) -> str:
    """Review a topic."""
    return f"Review this: {topic}"


if __name__ == "__main__":
    server.run()
