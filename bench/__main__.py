"""`python -m bench [NAME...]`: measure, print a table, exit with 1 if a limit is missed."""

import argparse
import compileall
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import (
    checkpoint,
    hooks,
    judge,
    large,
    memory,
    pages,
    queue,
    resume,
    sandbox,
    server,
    sessions,
    table,
    turns,
    web,
)
from bench.graphs import graph, random_graphs, scheduler
from bench.measure import Bench, BenchResult
from bench.program import BenchError
from bench.service import containers, pool
from bench.start import commands, first_request, first_word
from bench.terminal import prompt, screen

ROOT = Path(__file__).resolve().parents[1]
BENCHES = (
    Bench(name="version", run=commands.version),
    Bench(name="help", run=commands.help_page),
    Bench(name="completion", run=commands.completion),
    Bench(name="first-request", run=first_request.first_request),
    Bench(name="first-word", run=first_word.first_word),
    Bench(name="large-folder", run=first_request.many_files),
    Bench(name="mcp-servers", run=first_request.mcp_servers),
    Bench(name="prompt", run=prompt.prompt),
    Bench(name="typing", run=prompt.typing),
    Bench(name="drawing", run=prompt.drawing),
    Bench(name="frames", run=screen.frames),
    Bench(name="turns", run=turns.turns),
    Bench(name="log-file", run=turns.log_file),
    Bench(name="graph", run=graph.graph),
    Bench(name="random-graphs", run=random_graphs.random_graphs),
    Bench(name="streamed-plan", run=random_graphs.streamed_plan),
    Bench(name="scheduler", run=scheduler.scheduler),
    Bench(name="judge", run=judge.judge),
    Bench(name="hooks", run=hooks.hooks),
    Bench(name="memory", run=memory.one_shot),
    Bench(name="long-run", run=memory.long_run),
    Bench(name="request-size", run=turns.first_bodies),
    Bench(name="resume", run=resume.resume),
    Bench(name="sessions", run=sessions.sessions),
    Bench(name="large-logs", run=large.large_logs),
    Bench(name="large-outputs", run=large.large_outputs),
    Bench(name="many-files", run=large.many_files),
    Bench(name="chain", run=large.chain),
    Bench(name="sandbox", run=sandbox.sandbox),
    Bench(name="container", run=containers.container),
    Bench(name="pool", run=pool.pool),
    Bench(name="checkpoint", run=checkpoint.checkpoint),
    Bench(name="pages", run=pages.pages),
    Bench(name="web", run=web.web),
    Bench(name="server", run=server.server),
    Bench(name="task-create", run=queue.create),
    Bench(name="task-start", run=queue.start),
    Bench(name="task-drain", run=queue.drain),
    Bench(name="task-list", run=queue.listing),
)


def main() -> int:
    """Measure speed and size."""
    return run_benches(BENCHES, program="python -m bench", description=__doc__)


def run_benches(benches: Sequence[Bench], *, program: str, description: str | None) -> int:
    """Run the benches selected on the command line, or all; return the exit code."""
    names = [bench.name for bench in benches]
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(names)}; all by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save the figures")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table into a document")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in names]:
        parser.error(f"unknown: {', '.join(unknown)}; choose from {', '.join(names)}")
    _compile()
    figures = _measure([bench for bench in benches if bench.name in (options.names or names)])
    print(table.render_text(figures))
    if options.json:
        table.save(options.json, figures)
    if options.markdown:
        table.update_document(options.markdown, table.render_markdown(figures), program=program)
    return 0 if all(figure.is_met for figure in figures) else 1


def _measure(benches: Sequence[Bench]) -> list[BenchResult]:
    figures: list[BenchResult] = []
    for bench in benches:
        print(f"{bench.name} …", end=" ", flush=True, file=sys.stderr)
        figures += bench.run()
        print("done", file=sys.stderr)
    return figures


def _compile() -> None:
    """Compile the sources, as an installation does; the measured programs may not be able to write bytecode."""
    for folder in ("cli", "agent", "tooling"):
        compileall.compile_dir(ROOT / folder, quiet=1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as failure:
        sys.exit(f"error: {failure}")
