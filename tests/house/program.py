"""Run the real program as a separate process with its own home."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PYTHON = Path(sys.executable)
AGENT = PYTHON.with_name("agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedProcess:
    """The result of a process, and the modules it loaded."""

    exit_code: int
    stdout: str
    stderr: str
    loaded_modules: frozenset[str]


def run_python(home: Path, words: Sequence[str | Path], *, cwd: Path | None = None) -> FinishedProcess:
    """Run Python with a clean environment and record every module it imports, in any thread."""
    done = subprocess.run(
        [PYTHON, "-X", "importtime", *words],
        env={"HOME": str(home), "AGENT_SANDBOX": str(home / "data"), "PATH": "/usr/local/bin:/usr/bin:/bin"},
        cwd=cwd or home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = done.stderr.splitlines()
    return FinishedProcess(
        exit_code=done.returncode,
        stdout=done.stdout,
        stderr="\n".join(line for line in lines if not line.startswith("import time:")),
        loaded_modules=frozenset(line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")),
    )


def run_agent(home: Path, *words: str | Path) -> FinishedProcess:
    """Run the installed `agent` program."""
    return run_python(home, (AGENT, *words))
