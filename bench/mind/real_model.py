"""`python -m bench.mind.real_model`: run the small tasks on a real model, one JSON line per task."""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.mind.agents import AGENTS, Job
from bench.mind.proxy import Conditions, CountingProxy
from bench.mind.tasks.code_tasks import CODE_TASKS
from bench.mind.tasks.data_tasks import DATA_TASKS
from bench.mind.tasks.task import Task, Work
from bench.program import BenchError

TASKS = (*CODE_TASKS, *DATA_TASKS)
DEFAULT_MINI = Path("/tmp/mswe/bin/mini")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """One line of the results."""

    agent: str
    label: str
    task: str
    conditions: Conditions
    solved: bool
    status: str
    requests: int
    refused: int
    seconds: float
    model_seconds: float
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    answer: str


def main() -> None:
    """Run the selected tasks and append a line for each as soon as it ends."""
    options = _parse_options()
    chosen = [task for task in TASKS if not options.only or task.name in options.only]
    done = _finished_tasks(options.results, options.label or options.agent) if options.missing else frozenset()
    for task in chosen:
        if task.name in done:
            continue
        result = _run_task(task, options)
        with options.results.open("a") as file:
            file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
        verdict = "solved" if result.solved else "not solved"
        print(
            f"{task.name}: {verdict}, {result.requests} requests, {result.seconds:.0f} s, {result.status}", flush=True
        )


def _run_task(task: Task, options: argparse.Namespace) -> TaskResult:
    conditions = Conditions(
        max_requests=options.limit_requests,
        max_reply_tokens=options.limit_reply_tokens,
        temperature=options.temperature,
        seed=options.seed,
    )
    with (
        tempfile.TemporaryDirectory(prefix="task-") as name,
        CountingProxy(options.api_base, conditions) as proxy,
    ):
        folder, home = Path(name, task.name), options.keep / task.name if options.keep else Path(name, "home")
        folder.mkdir()
        home.mkdir(parents=True, exist_ok=True)
        task.build(folder)
        job = Job(
            request=task.request,
            folder=folder,
            home=home,
            api_base=proxy.api_base,
            max_requests=options.limit_requests,
            timeout_s=options.timeout,
            settings=tuple(options.set),
            program=options.mini,
        )
        started = time.monotonic()
        ending = AGENTS[options.agent](job)
        seconds = time.monotonic() - started
        traffic = proxy.traffic
        if not traffic.requests:
            raise BenchError(f"{options.agent} sent no request on {task.name}, {ending.status}: {ending.answer}")
        solved = task.check(Work(folder=folder))
    return TaskResult(
        agent=options.agent,
        label=options.label or options.agent,
        task=task.name,
        conditions=conditions,
        solved=solved,
        status=ending.status,
        requests=traffic.requests,
        refused=traffic.refused,
        seconds=round(seconds, 1),
        model_seconds=round(traffic.model_s, 1),
        prompt_tokens=traffic.prompt_tokens,
        cached_tokens=traffic.cached_tokens,
        completion_tokens=traffic.completion_tokens,
        answer=ending.answer[-1000:],
    )


def _finished_tasks(results: Path, label: str) -> frozenset[str]:
    lines = results.read_text().splitlines() if results.exists() else []
    rows = [json.loads(line) for line in lines]
    return frozenset(row["task"] for row in rows if row["label"] == label)


def _parse_options() -> argparse.Namespace:
    names = [task.name for task in TASKS]
    parser = argparse.ArgumentParser(prog="python -m bench.mind.real_model", description=__doc__)
    parser.add_argument("--api-base", default="http://127.0.0.1:18090/v1", metavar="URL")
    parser.add_argument("--agent", choices=sorted(AGENTS), default="windlass")
    parser.add_argument("--label", help="name of the row in the report; the agent's name by default")
    parser.add_argument("--limit-requests", type=int, default=15, metavar="N", help="requests per task")
    parser.add_argument("--limit-reply-tokens", type=int, default=2048, metavar="N", help="tokens per reply")
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help="sampling, for every agent alike")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--timeout", type=float, default=900, metavar="SECONDS", help="time per task")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--results", type=Path, default=Path("results.jsonl"), metavar="FILE", help="append lines here")
    parser.add_argument("--missing", action="store_true", help="skip tasks that already have a line")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the agent")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the agent's home and output there")
    parser.add_argument("--mini", type=Path, default=DEFAULT_MINI, metavar="FILE", help="program of mini-swe-agent")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        main()
    except BenchError as failure:
        sys.exit(f"error: {failure}")
