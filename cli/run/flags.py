"""The flags of `agent run` and related commands: their help, and the parsed result."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cli.options import Argument, option

# The flags of the prompt are flags of `agent run`, too.
from cli.prompt_flags import Allow as Allow
from cli.prompt_flags import AllowNet as AllowNet
from cli.prompt_flags import Backend as Backend
from cli.prompt_flags import Deny as Deny
from cli.prompt_flags import Folder as Folder
from cli.prompt_flags import Image as Image
from cli.prompt_flags import MaxBudget as MaxBudget
from cli.prompt_flags import Mode as Mode
from cli.prompt_flags import Model as Model
from cli.prompt_flags import Planning as Planning
from cli.prompt_flags import Profile as Profile
from cli.prompt_flags import Reasoning as Reasoning
from cli.prompt_flags import Worktree as Worktree
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
    Argument(metavar="[TASK]", help="What to do; - reads it from stdin."),
]
Files = Annotated[
    list[Path] | None, option("-f", "--file", metavar="FILE", help="Attach a text file or an image (repeatable).")
]
Inputs = Annotated[
    list[str] | None,
    option(
        "-i",
        "--input",
        metavar="[NAME=]FILE",
        help="Copy a file into input/ in the workspace, under NAME if given (repeatable).",
    ),
]
Repo = Annotated[
    str | None,
    option("--repo", metavar="URL", help="Clone this git repository into the workspace and work in it."),
]
Branch = Annotated[
    str | None, option("--branch", metavar="NAME", help="Branch of --repo; its default branch if left out.")
]
Skills = Annotated[
    list[str] | None,
    option("--skill", metavar="NAME|PATH", help="Give the model this skill with the task (repeatable)."),
]
UserCommandName = Annotated[
    str | None,
    option("--command", metavar="NAME", help="Run this command of yours; the task is its arguments."),
]
Shallow = Annotated[bool, option("--shallow", help="Clone only the latest commit of --repo.")]
Format = Annotated[
    OutputFormat,
    option("--output-format", metavar="FORMAT", help="Format of stdout: text, json or stream-json."),
]
StdinFormat = Annotated[
    InputFormat,
    option("--input-format", metavar="FORMAT", help="Format of stdin: text, or stream-json (commands of a program)."),
]
LastMessage = Annotated[
    Path | None,
    option("-o", "--output-last-message", metavar="FILE", help="Also write the answer to a file."),
]
Schema = Annotated[
    Path | None, option("--output-schema", metavar="FILE", help="JSON Schema that the answer must match.")
]
Quiet = Annotated[bool, option("-q", "--quiet", help="Do not show progress on stderr.")]
Plain = Annotated[bool, option("--plain", help="Show progress line by line, without redrawing.")]
Run = Annotated[
    str | None,
    Argument(
        metavar="[RUN]",
        help="Run to resume, by id or prefix; else the last unfinished one here.",
    ),
]
Continue = Annotated[bool, option("-c", "--continue", help="Continue the last session of the current folder.")]
Resume = Annotated[str | None, option("-r", "--resume", metavar="ID", help="Continue this session or run.")]
Fork = Annotated[bool, option("--fork", help="Continue in a copy of the session.")]
Session = Annotated[
    str | None, option("--session", metavar="ID", help="Use this session; create it if it does not exist.")
]
Ephemeral = Annotated[bool, option("--ephemeral", help="Keep no session on disk.")]
Scratch = Annotated[bool, option("--scratch", help="Work in an empty folder of the session.")]
AddDirs = Annotated[
    list[Path] | None, option("--add-dir", metavar="DIR", help="Let tools use this folder too (repeatable).")
]
NoCache = Annotated[bool, option("--no-cache", help="Do not read or write the web page cache.")]
PlannerModel = Annotated[
    str | None, option("--planner-model", metavar="MODEL", help="Model to plan with, if not --model.")
]
Assignments = Annotated[
    list[str] | None, option("--set", metavar="KEY=VALUE", help="Override any setting (repeatable).")
]
Strict = Annotated[bool, option("--strict-config", help="Treat suspicious settings as errors.")]
Bare = Annotated[bool, option("--bare", help="Ignore your settings file, memory, project notes and MCP servers.")]
PlanOnly = Annotated[bool, option("--plan-only", help="Show the plan without running it.")]
PlanFile = Annotated[
    Path | None, option("--plan", metavar="FILE", help="Run this plan file; the task is then optional.")
]
ShownPlan = Annotated[
    Path | None, option("--plan", metavar="FILE", help="Show this plan file instead of making a plan.")
]
Edit = Annotated[bool, option("--edit", help="Open the plan in your editor first.")]
Save = Annotated[Path | None, option("--save", metavar="FILE", help="Save the plan as .toml or .json.")]
ManifestFile = Annotated[
    Path | None,
    option("--manifest", metavar="FILE", help="Allow only what this manifest has; needing more exits with 57."),
]
PlanManifest = Annotated[
    str | None,
    option("--manifest", metavar="[FILE]", help="Show all permissions the plan needs, or save them to a file."),
]
Replan = Annotated[str | None, option("--replan", metavar="WHEN", help=_REPLAN)]
Concurrency = Annotated[
    int | None, option("--concurrency", metavar="N", help="Maximum steps running at the same time.")
]
MaxSteps = Annotated[int | None, option("--max-steps", metavar="N", help="Maximum steps in a plan.")]
MaxTurns = Annotated[int | None, option("--max-turns", metavar="N", help="Maximum model turns in a step.")]
MaxTokens = Annotated[int | None, option("--max-tokens", metavar="N", help="Maximum tokens of the run.")]
Timeout = Annotated[float | None, option("--timeout", metavar="SECONDS", help="Time limit of the run.")]
OnApproval = Annotated[str | None, option("--on-approval", metavar="ACTION", help=_ON_APPROVAL)]
RequireVerified = Annotated[bool | None, option("--require-verified", help="Fail unless a check passed.")]
Record = Annotated[Path | None, option("--record", metavar="FILE", help="Record every model exchange in a cassette.")]
Replay = Annotated[
    Path | None, option("--replay", metavar="FILE", help="Replay a cassette instead of calling a model.")
]
McpFiles = Annotated[
    list[Path] | None,
    option("--mcp", metavar="FILE", help="Offer the tools of the MCP servers in this file (repeatable)."),
]
Callback = Annotated[
    str | None, option("--callback-url", metavar="URL", help="POST the events of the run to this URL.")
]


# Flags that set a setting.
_SETTINGS = {
    "backend": "backend",
    "docker_image": "docker_image",
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
    "callback_url": "callback_url",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """A parsed command line of `agent run`; `settings` holds the flags that are settings.

    `finish` is the run that `agent resume` resumes, empty for the last one. `manifest_output` is the file for the
    manifest of a plan, empty for stdout.
    """

    prompt: str | None
    files: tuple[Path, ...] = ()
    inputs: tuple[str, ...] = ()
    repo: str | None = None
    skills: tuple[str, ...] = ()
    user_command: str | None = None
    branch: str | None = None
    shallow: bool = False
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
    manifest: Path | None = None
    manifest_output: str | None = None
    mcp: tuple[Path, ...] = ()
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
    """Parse the flags into one value; unsupported combinations are refused, never ignored."""
    check_flags(given)
    settings = {setting: given[name] for name, setting in _SETTINGS.items() if given.get(name) is not None}
    settings |= {"web_cache": False} if given.get("no_cache") else {}
    known = {field.name for field in fields(RunFlags)}
    values = {name: value for name, value in given.items() if name in known and value is not None}
    return decode(RunFlags, {"prompt": None, **values, "settings": settings})
