"""`agent acp`: serve an editor over the Agent Client Protocol."""

import typer

from agent.vocabulary.errors import UsageError
from cli import prompt_flags as flag

INSTALL = "pip install 'windlass[acp]'"
MISSING = "agent acp needs the Agent Client Protocol SDK, which is not installed"


def command(
    *,
    model: flag.Model = None,
    reasoning: flag.Reasoning = None,
    planning: flag.Planning = None,
    approval_mode: flag.Mode = None,
    allow: flag.Allow = None,
    deny: flag.Deny = None,
    backend: flag.Backend = None,
    docker_image: flag.Image = None,
    allow_net: flag.AllowNet = None,
    max_budget_usd: flag.MaxBudget = None,
    profile: flag.Profile = None,
) -> None:
    """Serve an editor over the Agent Client Protocol, on stdin and stdout. An editor starts this command."""
    given = dict(locals())
    from cli.run.flag_checks import prompt_settings

    settings = prompt_settings(given)
    try:
        from cli.acp.server import serve_editor
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "acp":
            raise
        raise UsageError(MISSING, INSTALL) from error
    raise typer.Exit(serve_editor(settings, profile))
