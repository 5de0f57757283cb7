"""Baseline for parallel steps: asyncio streams send a body for each, on its own connection, and parse the reply."""

import asyncio
import json
import sys
from pathlib import Path


async def ask(host: str, path: str, body: bytes) -> str:
    """Return the text of a streamed reply."""
    address, _, port = host.partition(":")
    reader, writer = await asyncio.open_connection(address, int(port))
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer sk-0123456789abcdef\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    text = ""
    async for line in reader:
        if line.startswith(b"data: {"):
            for choice in json.loads(line[6:]).get("choices", []):
                text += choice["delta"].get("content") or ""
        elif line.startswith(b"0\r"):
            break
    writer.close()
    return text


async def main(address: str, body: bytes, count: int) -> None:
    """Ask for the plan, then for all steps at once, then for the answer."""
    _, _, host, rest = address.split("/", 3)
    await ask(host, f"/{rest}", body)
    await asyncio.gather(*(ask(host, f"/{rest}", body) for _ in range(count)))
    await ask(host, f"/{rest}", body)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]).read_bytes(), int(sys.argv[3])))
