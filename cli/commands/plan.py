"""`agent plan`: show the plan of a task and execute nothing."""

import typer

from cli.run import flags as flag


def command(
    prompt: flag.Prompt = None,
    *,
    files: flag.Files = None,
    output_format: flag.Format = "text",
    quiet: flag.Quiet = False,
    session: flag.Session = None,
    cwd: flag.Folder = None,
    model: flag.Model = None,
    planner_model: flag.PlannerModel = None,
    reasoning: flag.Reasoning = None,
    profile: flag.Profile = None,
    assignments: flag.Assignments = None,
    strict: flag.Strict = False,
    bare: flag.Bare = False,
    record: flag.Record = None,
    replay: flag.Replay = None,
    plan: flag.ShownPlan = None,
    edit: flag.Edit = False,
    save: flag.Save = None,
    manifest_output: flag.PlanManifest = None,
) -> None:
    """Plan a task; execute nothing."""
    given = {**locals(), "plan_only": True}
    from cli.run.run_task import run_task

    raise typer.Exit(run_task(given))
