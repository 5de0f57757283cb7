"""The box as an ordinary user has it: started as a program of its own, by somebody who is not root.

Reads a JSON object with `workspace`, `environ` and `script`, writes one with `exit_code` and `output`.
"""

import asyncio
import json
import sys
from pathlib import Path

from agent.backends.sandbox.runner import build_sandbox_runner
from tooling.contract.command import CommandOutput, CommandRequest


async def run(workspace: Path, environ: dict[str, str], script: str) -> CommandOutput:
    runner = build_sandbox_runner(workspace=workspace, environ=environ)
    return await runner.run(CommandRequest(argv=("bash", "-c", script), cwd=workspace, timeout_s=120))


def main() -> None:
    asked = json.load(sys.stdin)
    found = asyncio.run(run(Path(asked["workspace"]), asked["environ"], asked["script"]))
    json.dump({"exit_code": found.exit_code, "output": found.output.decode(errors="replace")}, sys.stdout)


if __name__ == "__main__":
    main()
