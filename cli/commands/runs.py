"""`agent runs`: list, inspect, bisect and replay runs, and show the evidence for their answers."""

from typing import Annotated

import typer

from agent.config.user_dirs import data_dir, os_environ
from agent.sessions.store import SessionStore
from agent.sessions.views.listing import RunRef, find_run
from agent.vocabulary.errors import AgentError, UsageError
from cli.commands.sessions import AllOption, JsonOption, LimitOption, max_rows
from cli.pages.pages import print_json, print_page, print_table, stdout_colors, terminal_width
from cli.run import flags as flag
from tooling.contract.json_codec import encode

app = typer.Typer(no_args_is_help=True)
NO_EFFECTS = "(no effects outside the workspace)"
MORE_RUNS = "there are older runs; --all shows them"

RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, a prefix of it, or last.")]

LastRunArgument = Annotated[str, typer.Argument(metavar="[RUN]", help="Id of a run, a prefix of it, or last.")]


@app.command("list")
def list_runs(
    *,
    session: Annotated[
        str | None, typer.Option("--session", metavar="SESSION", help="Only runs of this session.")
    ] = None,
    limit: LimitOption = None,
    show_all: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """List runs, newest first."""
    from agent.sessions.views.listing import newest_runs, run_rows
    from cli.pages.run_pages import runs_table

    store, count = _store(), max_rows(limit, show_all=show_all, as_json=as_json)
    # One more than is shown, to find out whether there are more.
    more = None if count is None else count + 1
    found = run_rows(store.find(session))[:more] if session else newest_runs(store, more)
    rows = found[:count]
    if as_json:
        print_json(encode(rows))
    else:
        print_table(runs_table(rows, terminal_width(), stdout_colors()) if rows else ["(no runs)"])
    if len(found) > len(rows):
        typer.echo(MORE_RUNS, err=True)


@app.command("show")
def show_run(run: LastRunArgument = "last", *, as_json: JsonOption = False) -> None:
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
        print_page(render_evidence(evidence), is_wrapped=False)


@app.command("effects")
def show_effects(run: LastRunArgument = "last", *, as_json: JsonOption = False) -> None:
    """List what a run did outside its workspace.

    Requests, commands and connections, also of the runs that it resumed.
    """
    from agent.sessions.log.log_index import read_run_chain
    from agent.sessions.views.run_summary import run_effects
    from cli.pages.run_pages import effects_table

    ref = _find_run(run)
    effects = run_effects(read_run_chain(ref.folder.events, ref.run_id))
    if as_json:
        print_json([{**_object(encode(effect)), "is_in_doubt": effect.is_in_doubt} for effect in effects])
    else:
        print_table(effects_table(effects, terminal_width(), stdout_colors()) if effects else [NO_EFFECTS])


@app.command("bisect")
def bisect_run(
    run: RunArgument,
    *,
    check: Annotated[
        str, typer.Option("--check", metavar="CMD", help="Shell command that exits with 0 if all is well.")
    ],
    undo: Annotated[bool, typer.Option("--undo", help="Undo the step without asking.")] = False,
    backend: flag.Backend = None,
    docker_image: flag.Image = None,
    allow_net: flag.AllowNet = None,
    allow: flag.Allow = None,
    deny: flag.Deny = None,
    assignments: flag.Assignments = None,
    as_json: JsonOption = False,
) -> None:
    """Find the step after which a check fails, in a copy of the folder. Exits with 1 if there is no such step."""
    from cli.pages.run_bisect import BisectOptions, run_bisect
    from cli.run.standalone_call import CallOptions

    if not check.strip():
        raise UsageError("no check given", "for example: agent runs bisect last --check 'make test'")
    call = CallOptions(
        flags={"backend": backend, "docker_image": docker_image, "allow_net": allow_net, "allow": allow, "deny": deny},
        assignments=tuple(assignments or ()),
    )
    options = BisectOptions(check=check, call=call, as_json=as_json, is_undone=undo)
    raise typer.Exit(run_bisect(_find_run(run), options))


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
    docker_image: flag.Image = None,
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
    submit = recorded.submit
    replayed = {"prompt": submit.prompt, "plan_only": submit.plan_only, "replay": recorded.cassette}
    # The commands of a replay run for real: not in the current folder unless requested.
    replayed["scratch"] = cwd is None
    raise typer.Exit(run_task({**given, **replayed, "planning": recorded.planning}, submit))


def _store() -> SessionStore:
    return SessionStore(data_dir(os_environ()))


def _find_run(run: str) -> RunRef:
    return find_run(_store(), run)


def _object(data: object) -> dict[str, object]:
    assert isinstance(data, dict)
    return data
