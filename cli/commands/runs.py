"""`agent runs`: list, inspect and replay runs, and show the evidence for their answers."""

from dataclasses import replace
from typing import Annotated

import typer

from agent.config.user_dirs import data_dir, os_environ
from agent.sessions.store import SessionStore
from agent.sessions.views.listing import RunRef, find_run
from agent.vocabulary.errors import AgentError
from cli.pages.pages import print_json, print_lines, print_page, print_table, stdout_colors, terminal_width
from cli.run import flags as flag
from tooling.contract.json_codec import encode

app = typer.Typer(no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, a prefix of it, or last.")]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="Maximum number to list.")]
AllOption = Annotated[bool, typer.Option("--all", "-a", help="List all.")]
_DEFAULT_LIMIT = 30


@app.command("list")
def list_runs(
    *,
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Only runs of this session.")
    ] = None,
    limit: LimitOption = _DEFAULT_LIMIT,
    show_all: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """List runs, newest first."""
    from agent.sessions.views.listing import newest_runs, run_rows
    from cli.pages.run_pages import runs_table

    store, max_rows = _store(), None if show_all else limit
    rows = run_rows(store.find(session))[:max_rows] if session else newest_runs(store, max_rows)
    if as_json:
        print_json(encode(rows))
    else:
        print_table(runs_table(rows, terminal_width(), stdout_colors()) if rows else ["(no runs)"])


@app.command("show")
def show_run(run: RunArgument, *, as_json: JsonOption = False) -> None:
    """Show the plan, steps and answer of a run."""
    from agent.sessions.log.log_index import run_events
    from agent.sessions.views.listing import run_status
    from agent.sessions.views.run_summary import run_view
    from cli.pages.run_pages import render_run

    ref = _find_run(run)
    view = run_view(run_events(ref.folder.events, ref.run_id))
    status = run_status(ref, view.subtype)
    if as_json:
        print_json({"status": status, **_object(encode(view))})
    else:
        print_page(render_run(view, status=status, width=terminal_width()))


@app.command("events")
def show_events(
    run: RunArgument,
    *,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only events of this type (repeatable).")
    ] = None,
    steps: Annotated[
        list[str] | None, typer.Option("--step", metavar="STEP", help="Only events of this step (repeatable).")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for new events until the run ends.")] = False,
) -> None:
    """Print the events of a run. One JSON object per line, as in the log."""
    from cli.pages.run_stream import print_events

    raise typer.Exit(print_events(_find_run(run), types=types or (), steps=steps or (), is_followed=follow))


@app.command("why")
def show_evidence(
    run: RunArgument,
    step: Annotated[str, typer.Argument(metavar="STEP", help="Id of a step, as cited in answers: s2 for [s2].")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Show the evidence for a step. Calls with their full output, changes, checks and the answer."""
    from agent.sessions.views.evidence import collect_evidence
    from cli.pages.run_pages import render_evidence

    ref = _find_run(run)
    evidence = collect_evidence(ref.folder, ref.run_id, step.strip("[]"))
    if as_json:
        print_json(encode(evidence))
    else:
        print_lines(render_evidence(evidence))


@app.command("replay")
def replay_run(
    run: RunArgument,
    *,
    inputs: flag.Inputs = None,
    output_format: flag.Format = "text",
    last_message: flag.LastMessage = None,
    quiet: flag.Quiet = False,
    cwd: flag.Folder = None,
    backend: flag.Backend = None,
    allow_net: flag.AllowNet = None,
    approval_mode: flag.Mode = None,
    allow: flag.Allow = None,
    deny: flag.Deny = None,
    on_approval: flag.OnApproval = None,
) -> None:
    """Replay a recorded run without calling a model. Tools run for real, in a new session."""
    given = {name: value for name, value in locals().items() if name != "run"}
    from agent.sessions.resume.replay import load_replay
    from cli.run.run_task import report_error, run_task

    try:
        recorded = load_replay(_find_run(run))
    except AgentError as error:
        raise typer.Exit(report_error(error, output_format)) from error
    submit = replace(recorded.submit, inputs=tuple(inputs or ()))
    replayed = {"prompt": submit.prompt, "plan_only": submit.plan_only, "replay": recorded.cassette}
    raise typer.Exit(run_task({**given, **replayed, "planning": recorded.planning}, submit))


def _store() -> SessionStore:
    return SessionStore(data_dir(os_environ()))


def _find_run(run: str) -> RunRef:
    return find_run(_store(), run)


def _object(data: object) -> dict[str, object]:
    assert isinstance(data, dict)
    return data
