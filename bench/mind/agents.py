"""The agents compared on the real model, each as a command line with its own home."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from bench.mind.tasks.task import confine
from bench.program import AGENT

# A request may take minutes on a slow machine; the time limit of the task ends it.
_PATIENCE_S = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One task for one agent: the request, the folder, and the limits."""

    request: str
    folder: Path
    home: Path
    api_base: str
    max_requests: int
    timeout_s: float
    settings: tuple[str, ...] = ()
    program: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of an agent's run, and its last output."""

    status: str
    answer: str


Agent: TypeAlias = Callable[[Job], Ending]


def run_windlass(job: Job) -> Ending:
    """Run this program on a task, in its sandbox."""
    settings = (
        *(f"first_byte_timeout_s={_PATIENCE_S}", f"chunk_timeout_s={_PATIENCE_S}", "memory=false"),
        *job.settings,
    )
    words = [
        *(AGENT, "run", "-C", str(job.folder), "--model", "openai/local", "--approval-mode", "yolo"),
        *("--output-format", "json", "--max-turns", str(job.max_requests)),
        *(word for setting in settings for word in ("--set", setting)),
        job.request,
    ]
    environ = {
        **_bare_environ(job),
        "AGENT_SANDBOX": str(job.home / "data"),
        "AGENT_API_BASE": job.api_base,
        "AGENT_API_KEY": "none",
    }
    output, exit_code = _run_limited(words, environ, job)
    try:
        result = json.loads(output)
    except ValueError:
        return Ending(status=exit_code, answer=output[-2000:])
    return Ending(status=str(result.get("status", exit_code)), answer=str(result.get("answer", "")))


def run_mini_swe_agent(job: Job) -> Ending:
    """Run mini-swe-agent on a task with the prompts it ships for models without tool calls: commands in text."""
    return _run_mini(job, "mini_textbased.yaml", "litellm_textbased")


def run_mini_swe_agent_tools(job: Job) -> Ending:
    """Run mini-swe-agent on a task with its default prompts: commands as tool calls."""
    return _run_mini(job, "mini.yaml", "litellm")


AGENTS: Mapping[str, Agent] = {
    "windlass": run_windlass,
    "mini-swe-agent": run_mini_swe_agent,
    "mini-swe-agent-tools": run_mini_swe_agent_tools,
}


def _run_mini(job: Job, prompts: str, model_class: str) -> Ending:
    """Run mini-swe-agent in a sandbox that can write only to its folder, because it has none itself."""
    assert job.program
    trajectory = job.home / "trajectory.json"
    config = (
        *(prompts, f"model.model_class={model_class}", "model.cost_tracking=ignore_errors"),
        *(f"model.model_kwargs.api_base={job.api_base}", "model.model_kwargs.api_key=none"),
        *(f"model.model_kwargs.timeout={_PATIENCE_S}", f"agent.step_limit={job.max_requests}"),
        *job.settings,
    )
    wall = confine(job.folder, has_network=True, readable=(job.program.parents[1],), writable=(job.home,))
    words = [
        *(*wall, str(job.program), "--yolo", "--exit-immediately", "--model", "openai/local"),
        *("--output", str(trajectory), "--task", job.request),
        *(word for spec in config for word in ("--config", spec)),
    ]
    environ = {
        **_bare_environ(job),
        "TERM": "dumb",
        "MSWEA_CONFIGURED": "true",
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_GLOBAL_CONFIG_DIR": str(job.home),
        "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1",
    }
    output, exit_code = _run_limited(words, environ, job)
    if not trajectory.exists():
        return Ending(status=exit_code, answer=output[-2000:])
    saved = json.loads(trajectory.read_text())
    said = [str(message["content"]) for message in saved["messages"] if message["role"] == "assistant"]
    return Ending(status=saved["info"]["exit_status"] or exit_code, answer=said[-1] if said else "")


def _bare_environ(job: Job) -> dict[str, str]:
    path = "/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "HOME": str(job.home), "LANG": "C.UTF-8", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def _run_limited(words: Sequence[str], environ: Mapping[str, str], job: Job) -> tuple[str, str]:
    """Return the output of a program and its exit code, or `timeout` if it was killed with its children."""
    with (job.home / "output.txt").open("w+") as output, (job.home / "errors.txt").open("w") as errors:
        process = subprocess.Popen(
            words,
            env=environ,
            cwd=job.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            status = f"exit {process.wait(job.timeout_s)}"
        except subprocess.TimeoutExpired:
            status = "timeout"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        return output.read(), status
