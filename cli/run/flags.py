"""The flags of `agent run`: how they are spelled, and the value they become."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from agent.vocabulary.errors import UsageError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode

OutputFormat: TypeAlias = Literal["text", "json", "stream-json"]

Prompt = Annotated[str | None, typer.Argument(help="The task; '-' reads it from stdin.", show_default=False)]
Files = Annotated[list[Path] | None, typer.Option("-f", "--file", help="Attach a text file to the request.")]
Inputs = Annotated[list[Path] | None, typer.Option("-i", "--input", help="Copy a file into the workspace's input/.")]
Format = Annotated[OutputFormat, typer.Option("--output-format", help="What stdout carries.")]
LastMessage = Annotated[Path | None, typer.Option("-o", "--output-last-message", help="Write the answer to a file.")]
Schema = Annotated[Path | None, typer.Option("--output-schema", help="JSON schema the answer must fit.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress on stderr.")]
Plain = Annotated[bool, typer.Option("--plain", help="Progress line by line, nothing redrawn.")]
Run = Annotated[str | None, typer.Argument(metavar="[RUN]", help="Id of a run, or the beginning of it.")]
Continue = Annotated[bool, typer.Option("-c", "--continue", help="Go on with the last session.")]
Resume = Annotated[str | None, typer.Option("-r", "--resume", metavar="ID", help="Go on with this session or run.")]
Fork = Annotated[bool, typer.Option("--fork", help="Go on in a copy of the session.")]
Session = Annotated[str | None, typer.Option("--session", help="Use or make the session with this id.")]
Ephemeral = Annotated[bool, typer.Option("--ephemeral", help="Keep nothing on disk.")]
Folder = Annotated[Path | None, typer.Option("-C", "--cd", help="Work in this folder.")]
AddDirs = Annotated[list[Path] | None, typer.Option("--add-dir", help="A further folder tools may use.")]
Backend = Annotated[str | None, typer.Option("--backend", help="Where commands run: sandbox or host.")]
AllowNet = Annotated[list[str] | None, typer.Option("--allow-net", help="A host commands may reach.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Keep no pages on disk and use none kept.")]
Model = Annotated[str | None, typer.Option("--model", help="provider/name, or script:FILE.")]
PlannerModel = Annotated[str | None, typer.Option("--planner-model", help="Model that plans.")]
Profile = Annotated[str | None, typer.Option("--profile", help="Settings profile of the user's file.")]
Assignments = Annotated[list[str] | None, typer.Option("--set", help="key=value for any setting.")]
Strict = Annotated[bool, typer.Option("--strict-config", help="Doubtful settings are errors.")]
Bare = Annotated[bool, typer.Option("--bare", help="Leave the user's settings file out.")]
PlanOnly = Annotated[bool, typer.Option("--plan-only", help="Plan, execute nothing.")]
PlanFile = Annotated[Path | None, typer.Option("--plan", help="Execute this plan file; the task is optional then.")]
ShownPlan = Annotated[Path | None, typer.Option("--plan", help="Show this plan file; no planner is asked.")]
Edit = Annotated[bool, typer.Option("--edit", help="Open the plan in your editor first.")]
Save = Annotated[Path | None, typer.Option("--save", help="Write the plan to a file, .toml or .json.")]
Replan = Annotated[str | None, typer.Option("--replan", help="Plan the rest again: surprise, always or never.")]
Concurrency = Annotated[int | None, typer.Option("--concurrency", help="Steps at the same time.")]
MaxSteps = Annotated[int | None, typer.Option("--max-steps", help="Most steps in a plan.")]
MaxTurns = Annotated[int | None, typer.Option("--max-turns", help="Most model turns in a step.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", help="Most tokens of the run.")]
MaxBudget = Annotated[float | None, typer.Option("--max-budget-usd", help="Most money of the run.")]
Timeout = Annotated[float | None, typer.Option("--timeout", help="Wall-clock limit in seconds.")]
Mode = Annotated[str | None, typer.Option("--approval-mode", help="ask, auto-edit, never or yolo.")]
Allow = Annotated[list[str] | None, typer.Option("--allow", help="Command prefix that runs unasked.")]
Deny = Annotated[list[str] | None, typer.Option("--deny", help="Command prefix that never runs.")]
OnApproval = Annotated[str | None, typer.Option("--on-approval", help="Without a terminal: deny, defer or fail.")]
RequireVerified = Annotated[bool | None, typer.Option("--require-verified", help="Unverified is no success.")]
Record = Annotated[Path | None, typer.Option("--record", help="Keep every model exchange in a cassette.")]
Replay = Annotated[Path | None, typer.Option("--replay", help="Play a cassette instead of asking a model.")]
Callback = Annotated[str | None, typer.Option("--callback-url", help="POST events to this address. (Not yet.)")]


# Flags that are settings by another name, and flags whose part of the house is not built yet.
_SETTINGS = {
    "backend": "backend",
    "allow_net": "allow_net",
    "model": "model",
    "planner_model": "planner_model",
    "concurrency": "concurrency",
    "max_steps": "max_steps",
    "max_turns": "max_turns",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """One command line of `agent run`, understood; `settings` are the flags that are settings.

    `finish` is the run that `agent resume` goes on with, empty for the last one.
    """

    prompt: str | None
    files: tuple[Path, ...] = ()
    inputs: tuple[Path, ...] = ()
    output_format: OutputFormat = "text"
    last_message: Path | None = None
    schema: Path | None = None
    quiet: bool = False
    plain: bool = False
    finish: str | None = None
    go_on: bool = False
    resume: str | None = None
    fork: bool = False
    session: str | None = None
    ephemeral: bool = False
    cwd: Path | None = None
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
        """Say whether an earlier session or run is gone on with."""
        return self.finish is not None or self.go_on or self.resume is not None

    @property
    def has_no_task(self) -> bool:
        """Say whether there is neither a request nor a plan, so that only what is unfinished can be meant."""
        return self.prompt is None and self.plan is None


def check_backend(backend: object) -> None:
    """Say of a backend that is not built yet that it is not, instead of calling it unknown."""
    if backend in _UNIMPLEMENTED_BACKENDS:
        raise UsageError(f"--backend {backend} is not there yet", "use --backend sandbox, or --backend host")


def _check_plan_flags(given: Mapping[str, object]) -> None:
    save = given.get("save")
    if isinstance(save, Path) and save.suffix.lower() not in PLAN_SUFFIXES:
        raise UsageError(f"--save {save}: a plan file ends in {' or '.join(PLAN_SUFFIXES)}")
    if given.get("plan") and given.get("planner_model") and not given.get("replan"):
        raise UsageError("--plan leaves nothing to plan, so --planner-model has nothing to do")


def _check_session_flags(given: Mapping[str, object]) -> None:
    """Refuse to guess which session is meant."""
    names = {"session": "--session", "go_on": "--continue", "resume": "--resume"}
    chosen = [flag for name, flag in names.items() if given.get(name)]
    if given.get("ephemeral") and chosen:
        raise UsageError(f"--ephemeral keeps nothing, so it cannot use {chosen[0]}")
    if len(chosen) > 1:
        raise UsageError(f"{chosen[0]} and {chosen[1]} exclude each other")
    if given.get("fork") and not (chosen in (["--continue"], ["--resume"]) or given.get("finish") is not None):
        raise UsageError("--fork copies the session to go on with", "give --continue or --resume ID as well")


def parse_run_flags(given: Mapping[str, object]) -> RunFlags:
    """Return the flags as one value; a flag whose part does not exist yet is refused, never ignored."""
    for name, flag in _UNIMPLEMENTED.items():
        if given.get(name):
            raise UsageError(f"{flag} is not there yet", "leave it out; `agent run --help` marks what is not there yet")
    check_backend(given.get("backend"))
    if given.get("record") and given.get("replay"):
        raise UsageError("--record and --replay exclude each other")
    _check_session_flags(given)
    _check_plan_flags(given)
    settings = {setting: given[name] for name, setting in _SETTINGS.items() if given.get(name) is not None}
    settings |= {"web_cache": False} if given.get("no_cache") else {}
    known = {field.name for field in fields(RunFlags)}
    plain = {name: value for name, value in given.items() if name in known and value is not None}
    return decode(RunFlags, {"prompt": None, **plain, "settings": settings})
