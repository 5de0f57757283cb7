"""The flags of `agent run` and its relatives: their help, and the value they are parsed into."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from agent.vocabulary.errors import UsageError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]
InputFormat: TypeAlias = Literal["text", "stream-json"]

_REPLAN = (
    "When to replan the remaining steps: surprise (when a step fails or its result differs from the plan), "
    "always (after every step) or never."
)
_PLANNING = "When to plan: auto (the model hands out steps if that pays), always (before every task) or never."
_APPROVAL_MODE = (
    "When to ask for approval: ask (commands and edits), auto-edit (commands only), never (deny instead), "
    "yolo (allow instead), review (the reviewer model answers if it can) or plan (change nothing, only look around)."
)
_ON_APPROVAL = "What to do if approval is needed without a terminal: deny, defer or fail."

Prompt = Annotated[
    str | None,
    typer.Argument(metavar="[TASK]", help="What to do; - reads it from stdin.", show_default=False),
]
Files = Annotated[
    list[Path] | None, typer.Option("-f", "--file", metavar="FILE", help="Attach a text file or an image (repeatable).")
]
Inputs = Annotated[
    list[Path] | None,
    typer.Option("-i", "--input", metavar="FILE", help="Copy a file into input/ in the workspace (repeatable)."),
]
Format = Annotated[
    OutputFormat,
    typer.Option("--output-format", metavar="FORMAT", help="Format of stdout: text, json or stream-json."),
]
StdinFormat = Annotated[
    InputFormat,
    typer.Option(
        "--input-format", metavar="FORMAT", help="Format of stdin: text, or stream-json (commands of a program)."
    ),
]
LastMessage = Annotated[
    Path | None,
    typer.Option("-o", "--output-last-message", metavar="FILE", help="Also write the answer to a file."),
]
Schema = Annotated[
    Path | None, typer.Option("--output-schema", metavar="FILE", help="JSON Schema that the answer must match.")
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Do not show progress on stderr.")]
Plain = Annotated[bool, typer.Option("--plain", help="Show progress line by line, without redrawing.")]
Run = Annotated[
    str | None,
    typer.Argument(metavar="[RUN]", help="Run to resume, by id or prefix; the last unfinished run if omitted."),
]
Continue = Annotated[bool, typer.Option("-c", "--continue", help="Continue the last session.")]
Resume = Annotated[str | None, typer.Option("-r", "--resume", metavar="ID", help="Continue this session or run.")]
Fork = Annotated[bool, typer.Option("--fork", help="Continue in a copy of the session.")]
Session = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="Use this session; create it if it does not exist.")
]
Ephemeral = Annotated[bool, typer.Option("--ephemeral", help="Keep no session on disk.")]
Folder = Annotated[Path | None, typer.Option("-C", "--cd", metavar="DIR", help="Work in this folder.")]
Scratch = Annotated[bool, typer.Option("--scratch", help="Work in an empty folder of the session.")]
AddDirs = Annotated[
    list[Path] | None, typer.Option("--add-dir", metavar="DIR", help="Let tools use this folder too (repeatable).")
]
Backend = Annotated[
    str | None, typer.Option("--backend", metavar="BACKEND", help="Where commands run: sandbox or host.")
]
AllowNet = Annotated[
    list[str] | None,
    typer.Option("--allow-net", metavar="HOST", help="Let commands connect to this host (repeatable)."),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Do not read or write the web page cache.")]
Model = Annotated[
    str | None, typer.Option("--model", metavar="MODEL", help="Model to use: PROVIDER/NAME or script:FILE.")
]
PlannerModel = Annotated[
    str | None, typer.Option("--planner-model", metavar="MODEL", help="Model to plan with, if not --model.")
]
Reasoning = Annotated[
    str | None,
    typer.Option(
        "--reasoning", metavar="LEVEL", help="How much models reason before they answer: off, low, medium or high."
    ),
]
Profile = Annotated[
    str | None, typer.Option("--profile", metavar="NAME", help="Use this profile from your settings file.")
]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override any setting (repeatable).")
]
Strict = Annotated[bool, typer.Option("--strict-config", help="Treat suspicious settings as errors.")]
Bare = Annotated[bool, typer.Option("--bare", help="Ignore your settings file, memory and project notes.")]
PlanOnly = Annotated[bool, typer.Option("--plan-only", help="Show the plan without running it.")]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", metavar="FILE", help="Run this plan file; the task is then optional.")
]
ShownPlan = Annotated[
    Path | None, typer.Option("--plan", metavar="FILE", help="Show this plan file instead of making a plan.")
]
Edit = Annotated[bool, typer.Option("--edit", help="Open the plan in your editor first.")]
Save = Annotated[Path | None, typer.Option("--save", metavar="FILE", help="Save the plan as .toml or .json.")]
Planning = Annotated[str | None, typer.Option("--planning", metavar="WHEN", help=_PLANNING)]
Replan = Annotated[str | None, typer.Option("--replan", metavar="WHEN", help=_REPLAN)]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", metavar="N", help="Maximum steps running at the same time.")
]
MaxSteps = Annotated[int | None, typer.Option("--max-steps", metavar="N", help="Maximum steps in a plan.")]
MaxTurns = Annotated[int | None, typer.Option("--max-turns", metavar="N", help="Maximum model turns in a step.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", metavar="N", help="Maximum tokens of the run.")]
MaxBudget = Annotated[
    float | None, typer.Option("--max-budget-usd", metavar="USD", help="Maximum cost of the run in US dollars.")
]
Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", help="Time limit of the run.")]
Mode = Annotated[str | None, typer.Option("--approval-mode", metavar="MODE", help=_APPROVAL_MODE)]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="PREFIX", help="Run commands that start like this without asking (repeatable)."),
]
Deny = Annotated[
    list[str] | None,
    typer.Option("--deny", metavar="PREFIX", help="Never run commands that start like this (repeatable)."),
]
OnApproval = Annotated[str | None, typer.Option("--on-approval", metavar="ACTION", help=_ON_APPROVAL)]
RequireVerified = Annotated[bool | None, typer.Option("--require-verified", help="Fail unless a check passed.")]
Record = Annotated[
    Path | None, typer.Option("--record", metavar="FILE", help="Record every model exchange in a cassette.")
]
Replay = Annotated[
    Path | None, typer.Option("--replay", metavar="FILE", help="Replay a cassette instead of calling a model.")
]
Callback = Annotated[
    str | None, typer.Option("--callback-url", metavar="URL", help="POST events to this URL (not implemented yet).")
]


# Flags that set a setting of another name, and flags of features that are not implemented yet.
_SETTINGS = {
    "backend": "backend",
    "allow_net": "allow_net",
    "model": "model",
    "planner_model": "planner_model",
    "reasoning": "reasoning",
    "concurrency": "concurrency",
    "max_steps": "max_steps",
    "max_turns": "max_turns",
    "planning": "planning",
    "replan": "replan",
    "require_verified": "require_verified",
    "max_tokens": "max_tokens",
    "max_budget_usd": "max_budget_usd",
    "timeout": "timeout_s",
    "approval_mode": "approval_mode",
    "allow": "allow",
    "deny": "deny",
    "on_approval": "on_approval",
}
_UNIMPLEMENTED = {
    "callback_url": "--callback-url",
}
_UNIMPLEMENTED_BACKENDS = ("docker",)
PLAN_SUFFIXES = (".toml", ".json")
NOT_IMPLEMENTED = "is not implemented yet"
PLAN_SUFFIX_ERROR = f"a plan file must end in {' or '.join(PLAN_SUFFIXES)}"
STREAM_OUTPUT = "--input-format stream-json needs --output-format stream-json"
_SINGLE_TASK = {
    "prompt": "a task",
    "files": "--file",
    "inputs": "--input",
    "plan": "--plan",
    "plan_only": "--plan-only",
    "edit": "--edit",
    "ephemeral": "--ephemeral",
    "record": "--record",
    "replay": "--replay",
}
PLANNER_UNUSED = "--planner-model has no effect with --plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """A parsed command line of `agent run`; `settings` holds the flags that are settings.

    `finish` is the run that `agent resume` resumes, empty for the last one.
    """

    prompt: str | None
    files: tuple[Path, ...] = ()
    inputs: tuple[Path, ...] = ()
    output_format: OutputFormat = "text"
    input_format: InputFormat = "text"
    last_message: Path | None = None
    schema: Path | None = None
    quiet: bool = False
    plain: bool = False
    finish: str | None = None
    continue_last: bool = False
    resume: str | None = None
    fork: bool = False
    session: str | None = None
    ephemeral: bool = False
    cwd: Path | None = None
    scratch: bool = False
    add_dirs: tuple[Path, ...] = ()
    profile: str | None = None
    assignments: tuple[str, ...] = ()
    strict: bool = False
    bare: bool = False
    plan_only: bool = False
    plan: Path | None = None
    edit: bool = False
    save: Path | None = None
    record: Path | None = None
    replay: Path | None = None
    settings: Mapping[str, object]

    @property
    def is_resume(self) -> bool:
        """Whether the command line continues an earlier session or run."""
        return self.finish is not None or self.continue_last or self.resume is not None

    @property
    def has_no_task(self) -> bool:
        """Whether neither tasks nor a plan are given, which can only mean resuming an unfinished run."""
        return self.prompt is None and self.plan is None and self.input_format == "text"


def check_backend(backend: object) -> None:
    """Report a planned backend as not implemented rather than as unknown."""
    if backend in _UNIMPLEMENTED_BACKENDS:
        raise UsageError(f"--backend {backend} {NOT_IMPLEMENTED}", "use --backend sandbox or --backend host")


def _check_plan_flags(given: Mapping[str, object]) -> None:
    save = given.get("save")
    if isinstance(save, Path) and save.suffix.lower() not in PLAN_SUFFIXES:
        raise UsageError(f"--save {save}: {PLAN_SUFFIX_ERROR}")
    if given.get("plan") and given.get("planner_model") and not given.get("replan"):
        raise UsageError(PLANNER_UNUSED, "leave it out, or add --replan")


def _check_session_flags(given: Mapping[str, object]) -> None:
    """Reject flags that name more than one session or folder."""
    names = {"session": "--session", "continue_last": "--continue", "resume": "--resume"}
    chosen = [flag for name, flag in names.items() if given.get(name)]
    if given.get("ephemeral") and chosen:
        raise UsageError(f"--ephemeral cannot be used with {chosen[0]}")
    if len(chosen) > 1:
        raise UsageError(f"{chosen[0]} cannot be used with {chosen[1]}")
    elsewhere = ["-C"] if given.get("cwd") else [flag for flag in chosen if flag != "--session"]
    if given.get("scratch") and elsewhere:
        raise UsageError(f"--scratch cannot be used with {elsewhere[0]}")
    if given.get("fork") and not (chosen in (["--continue"], ["--resume"]) or given.get("finish") is not None):
        raise UsageError("--fork needs a session to copy", "add --continue or --resume ID")


def _check_input_format(given: Mapping[str, object]) -> None:
    """Reject flags that belong to a single task if a program sends the tasks."""
    if given.get("input_format", "text") == "text":
        return
    if given.get("output_format") != "stream-json":
        raise UsageError(STREAM_OUTPUT, "add --output-format stream-json")
    for name, flag in _SINGLE_TASK.items():
        if given.get(name):
            raise UsageError(f"{flag} cannot be used with --input-format stream-json", "send it as a request on stdin")


def parse_run_flags(given: Mapping[str, object]) -> RunFlags:
    """Parse the flags into one value; a flag that is not implemented is refused, never ignored."""
    for name, flag in _UNIMPLEMENTED.items():
        if given.get(name):
            raise UsageError(f"{flag} {NOT_IMPLEMENTED}", "leave it out")
    check_backend(given.get("backend"))
    if given.get("record") and given.get("replay"):
        raise UsageError("--record cannot be used with --replay")
    _check_session_flags(given)
    _check_plan_flags(given)
    _check_input_format(given)
    settings = {setting: given[name] for name, setting in _SETTINGS.items() if given.get(name) is not None}
    settings |= {"web_cache": False} if given.get("no_cache") else {}
    known = {field.name for field in fields(RunFlags)}
    values = {name: value for name, value in given.items() if name in known and value is not None}
    return decode(RunFlags, {"prompt": None, **values, "settings": settings})
