"""`agent resume`: resume an unfinished run."""

import typer

from agent.vocabulary.errors import UsageError
from cli.run import flags as flag


def command(
    finish: flag.Run = None,
    *,
    fork: flag.Fork = False,
    output_format: flag.Format = "text",
    last_message: flag.LastMessage = None,
    schema: flag.Schema = None,
    quiet: flag.Quiet = False,
    cwd: flag.Folder = None,
    add_dirs: flag.AddDirs = None,
    backend: flag.Backend = None,
    docker_image: flag.Image = None,
    allow_net: flag.AllowNet = None,
    model: flag.Model = None,
    planner_model: flag.PlannerModel = None,
    reasoning: flag.Reasoning = None,
    profile: flag.Profile = None,
    assignments: flag.Assignments = None,
    strict: flag.Strict = False,
    bare: flag.Bare = False,
    replan: flag.Replan = None,
    concurrency: flag.Concurrency = None,
    max_steps: flag.MaxSteps = None,
    max_turns: flag.MaxTurns = None,
    max_tokens: flag.MaxTokens = None,
    max_budget_usd: flag.MaxBudget = None,
    timeout: flag.Timeout = None,
    approval_mode: flag.Mode = None,
    allow: flag.Allow = None,
    deny: flag.Deny = None,
    on_approval: flag.OnApproval = None,
    require_verified: flag.RequireVerified = None,
    manifest: flag.ManifestFile = None,
    record: flag.Record = None,
    replay: flag.Replay = None,
    mcp: flag.McpFiles = None,
) -> None:
    """Resume an interrupted or partial run, the last one by default. Finished steps are not repeated."""
    if finish is not None and not finish.strip():
        raise UsageError("the id of the run is empty", "leave it out to resume the last unfinished run")
    given = {**locals(), "finish": finish or ""}
    from cli.run.run_task import run_task

    raise typer.Exit(run_task(given))
