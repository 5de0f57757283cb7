"""What a command line asks for: the task, what comes with it, and the plan when there is one already."""

from collections.abc import Mapping

from agent.config.settings import Settings
from agent.protocol.commands import Submit
from agent.vocabulary.plan import Plan
from cli.run.flags import RunFlags
from cli.run.progress import stderr_line
from cli.run.task_input import task_and_stdin


def submission(flags: RunFlags, settings: Settings, environ: Mapping[str, str]) -> Submit:
    """Return the task; a plan file is read, checked and perhaps edited before anything else happens."""
    plan, asked = None, flags.prompt
    if flags.plan:
        from cli.given_plan import given_plan

        given = given_plan(flags, settings, environ)
        plan, asked = given.plan, given.request if asked is None else asked
    prompt, stdin = task_and_stdin(
        asked, stderr_line, settings.timeout_s, reads_context=plan is None or _uses_context(flags, plan)
    )
    return Submit(
        prompt=prompt,
        stdin=stdin,
        files=flags.files,
        inputs=flags.inputs,
        plan_only=flags.plan_only,
        plan=plan,
    )


def _uses_context(flags: RunFlags, plan: Plan) -> bool:
    """Say whether piped text has a reader; a plan without a model must not wait for the end of a pipe."""
    return plan.needs_model and not flags.plan_only
