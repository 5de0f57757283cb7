"""Runs a script in the sandbox; started as a separate program by a user who is not root.

Reads a JSON object with `workspace`, `environ`, `script` and `sandbox`, writes one with `exit_code` and `output`.
"""

import asyncio
import json
import sys
from pathlib import Path

from agent.backends.sandbox.runner import build_sandbox_runner
from tooling.contract.command import CommandOutput, CommandRequest


async def run(workspace: Path, environ: dict[str, str], script: str, sandbox: str) -> CommandOutput:
    runner = build_sandbox_runner(workspace=workspace, environ=environ, sandbox_type=sandbox)
    try:
        output = await runner.run(CommandRequest(argv=("bash", "-c", script), cwd=workspace, timeout_s=120))
        await runner.stop()
        return output
    finally:
        runner.close()


def main() -> None:
    request = json.load(sys.stdin)
    result = asyncio.run(run(Path(request["workspace"]), request["environ"], request["script"], request["sandbox"]))
    json.dump({"exit_code": result.exit_code, "output": result.output.decode(errors="replace")}, sys.stdout)


if __name__ == "__main__":
    main()
