"""`agent run`: run one task from start to end."""

from cli.run import flags as flag


def command(
    prompt: flag.Prompt = None,
    *,
    files: flag.Files = None,
    inputs: flag.Inputs = None,
    skills: flag.Skills = None,
    user_command: flag.UserCommandName = None,
    repo: flag.Repo = None,
    branch: flag.Branch = None,
    shallow: flag.Shallow = False,
    input_format: flag.StdinFormat = "text",
    output_format: flag.Format = "text",
    last_message: flag.LastMessage = None,
    schema: flag.Schema = None,
    quiet: flag.Quiet = False,
    plain: flag.Plain = False,
    continue_last: flag.Continue = False,
    resume: flag.Resume = None,
    fork: flag.Fork = False,
    session: flag.Session = None,
    ephemeral: flag.Ephemeral = False,
    cwd: flag.Folder = None,
    scratch: flag.Scratch = False,
    worktree: flag.Worktree = None,
    add_dirs: flag.AddDirs = None,
    backend: flag.Backend = None,
    docker_image: flag.Image = None,
    allow_net: flag.AllowNet = None,
    no_cache: flag.NoCache = False,
    model: flag.Model = None,
    planner_model: flag.PlannerModel = None,
    reasoning: flag.Reasoning = None,
    profile: flag.Profile = None,
    assignments: flag.Assignments = None,
    strict: flag.Strict = False,
    bare: flag.Bare = False,
    plan_only: flag.PlanOnly = False,
    plan: flag.PlanFile = None,
    edit: flag.Edit = False,
    planning: flag.Planning = None,
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
    callback_url: flag.Callback = None,
    mcp: flag.McpFiles = None,
) -> None:
    """Run one task. The argument is the instruction; piped stdin is context."""
    raise SystemExit(_run(dict(locals())))


def _run(given: dict[str, object]) -> int:
    from cli.run.run_task import run_task

    return run_task(given)
