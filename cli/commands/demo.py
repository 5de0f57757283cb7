"""`agent demo`: a complete run with real tools and recorded model replies."""

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
A recorded conversation with a model, replayed with real tools: no network, no API key.
folder: {folder}
task:   {task}
"""
_OUTRO = """
What happened: the model handed out three steps; two ran in parallel, the third waited for both, wrote report.md \
and checked it. The answer went to stdout, everything else to stderr.

Next steps, in a folder of your own:
  agent
      open the prompt; it finds API keys and local models
  agent run "what is in this folder?"
      run one task; add --model NAME
  agent config set model NAME
      set the default model: openai/gpt-5-mini with OPENAI_API_KEY, anthropic/claude-sonnet-4-5 with \
ANTHROPIC_API_KEY, or a local one from ollama, llama.cpp or LM Studio without a key"""


def command(*, record: Annotated[bool, typer.Option("--record", hidden=True)] = False) -> None:
    """Run the demo in a temporary folder, without an API key or a network."""
    with TempDir() as folder:
        for file, text in _FILES.items():
            (folder / file).write_text(text)
        print_notice(_INTRO.format(folder=folder, task=_TASK))
        with as_file(files("cli.demo") / "cassette.jsonl") as cassette:
            exit_code = _play(folder, cassette, is_recording=record)
    print_notice(_OUTRO if exit_code == 0 else "\nThe demo failed; run `agent doctor` to check your setup.")
    raise typer.Exit(exit_code)


def _play(folder: Path, cassette: Path, *, is_recording: bool) -> int:
    script = cassette.with_name("script.jsonl")
    replies = {"model": f"script:{script}", "record": cassette} if is_recording else {"replay": cassette}
    flags = {"prompt": _TASK, "cwd": folder, "bare": True, "ephemeral": True, "approval_mode": "auto-edit"}
    return run_task({**flags, "planning": "auto", **replies})
