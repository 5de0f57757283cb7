"""`agent demo`: a whole run with real tools, its model's replies played from a cassette."""

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from cli.pages.pages import print_notice
from cli.run.run_task import run_task
from tooling.files.temp_dir import TempDir

_FILES = {
    "orders.csv": "customer,amount\nAda,400\nGrace,250\nAlan,300\nBarbara,400\n",
    "notes.txt": "done: order paper\nopen: send the invoice to Ada\nopen: call Grace about the delivery\n",
}
_TASK = "Add up the orders, find the open notes, and write both into report.md."
_INTRO = """\
A recorded conversation with a model, played with real tools: no network, no key.
folder: {folder}
task:   {task}
"""
_OUTRO = """
What happened: the task became a plan of three steps; two ran side by side, the third waited for both, wrote \
report.md and checked it. The answer went to stdout, everything else to stderr.

How to go on, in a folder of yours:
  agent
      the prompt; it finds keys and local models
  agent run -C . "what is in this folder?"
      one task; add --model NAME
  agent config set model NAME
      keep a model: openai/gpt-5-mini with OPENAI_API_KEY, anthropic/claude-sonnet-4-5 with ANTHROPIC_API_KEY, \
or none with ollama, llama.cpp or LM Studio"""


def command(*, record: Annotated[bool, typer.Option("--record", hidden=True)] = False) -> None:
    """Run the demonstration in a folder of its own, without a key or a network."""
    with TempDir() as folder:
        for file, text in _FILES.items():
            (folder / file).write_text(text)
        print_notice(_INTRO.format(folder=folder, task=_TASK))
        with as_file(files("cli.demo") / "cassette.jsonl") as cassette:
            exit_code = _play(folder, cassette, is_recording=record)
    print_notice(_OUTRO if exit_code == 0 else "\nThe demonstration failed; `agent doctor` may tell why.")
    raise typer.Exit(exit_code)


def _play(folder: Path, cassette: Path, *, is_recording: bool) -> int:
    script = cassette.with_name("script.jsonl")
    tape = {"model": f"script:{script}", "record": cassette} if is_recording else {"replay": cassette}
    flags = {"prompt": _TASK, "cwd": folder, "bare": True, "ephemeral": True, "approval_mode": "auto-edit"}
    return run_task({**flags, **tape})
