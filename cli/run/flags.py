"""The flags of `agent run` and its relatives: their help, and the value they are parsed into."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

# The flags of the prompt are flags of `agent run`, too.
from cli.prompt_flags import Allow as Allow
from cli.prompt_flags import AllowNet as AllowNet
from cli.prompt_flags import Backend as Backend
from cli.prompt_flags import Deny as Deny
from cli.prompt_flags import Folder as Folder
from cli.prompt_flags import MaxBudget as MaxBudget
from cli.prompt_flags import Mode as Mode
from cli.prompt_flags import Model as Model
from cli.prompt_flags import Planning as Planning
from cli.prompt_flags import Profile as Profile
from cli.prompt_flags import Reasoning as Reasoning
from cli.run.flag_checks import check_flags
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]
InputFormat: TypeAlias = Literal["text", "stream-json"]

_REPLAN = (
    "When to replan the remaining steps: surprise (when a step fails or its result differs from the plan), "
    "always (after every step) or never."
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
    typer.Argument(
        metavar="[RUN]",
        help="Run to resume, by id or prefix; else the last unfinished one here.",
    ),
]
Continue = Annotated[bool, typer.Option("-c", "--continue", help="Continue the last session of the current folder.")]
Resume = Annotated[str | None, typer.Option("-r", "--resume", metavar="ID", help="Continue this session or run.")]
Fork = Annotated[bool, typer.Option("--fork", help="Continue in a copy of the session.")]
Session = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="Use this session; create it if it does not exist.")
]
Ephemeral = Annotated[bool, typer.Option("--ephemeral", help="Keep no session on disk.")]
Scratch = Annotated[bool, typer.Option("--scratch", help="Work in an empty folder of the session.")]
Worktree = Annotated[
    str | None,
    typer.Option(
        "--worktree", metavar="[=NAME]", help="Work in a git worktree of its own, to be merged or discarded at the end."
    ),
]
AddDirs = Annotated[
    list[Path] | None, typer.Option("--add-dir", metavar="DIR", help="Let tools use this folder too (repeatable).")
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Do not read or write the web page cache.")]
PlannerModel = Annotated[
    str | None, typer.Option("--planner-model", metavar="MODEL", help="Model to plan with, if not --model.")
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
Replan = Annotated[str | None, typer.Option("--replan", metavar="WHEN", help=_REPLAN)]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", metavar="N", help="Maximum steps running at the same time.")
]
MaxSteps = Annotated[int | None, typer.Option("--max-steps", metavar="N", help="Maximum steps in a plan.")]
MaxTurns = Annotated[int | None, typer.Option("--max-turns", metavar="N", help="Maximum model turns in a step.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", metavar="N", help="Maximum tokens of the run.")]
Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", help="Time limit of the run.")]
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


# Flags that set a setting.
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
    worktree: str | None = None
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


def parse_run_flags(given: Mapping[str, object]) -> RunFlags:
    """Parse the flags into one value; what cannot be done is refused, never ignored."""
    check_flags(given)
    settings = {setting: given[name] for name, setting in _SETTINGS.items() if given.get(name) is not None}
    settings |= {"web_cache": False} if given.get("no_cache") else {}
    known = {field.name for field in fields(RunFlags)}
    values = {name: value for name, value in given.items() if name in known and value is not None}
    return decode(RunFlags, {"prompt": None, **values, "settings": settings})
