"""Rehearsal: runs a task on a disposable copy to find out which permissions it needs to run unattended.

Each round allows what the sheet of the previous round lists. Hosts, and tools with external effects, are recorded but
never granted, so nothing happens outside of the copy.
"""

import asyncio
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agent.planning.manifest_file import toml_manifest
from agent.service.agent_process import AgentProcess
from agent.service.staging import config_as_json
from agent.service.task import TaskRequest
from agent.sessions.store import SessionStore
from agent.vocabulary import exit_codes
from agent.vocabulary.errors import AgentError, InputError
from tooling.approvals.manifest import Manifest
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject, decode
from tooling.files.temp_dir import TempDir

# After a denial a run may need other permissions, so it is repeated with those it needed.
_MAX_ROUNDS = 5
# As in the manifest of a plan: margin for retries.
_COST_FACTOR = 2
_CANNOT_START = (
    exit_codes.USAGE,
    exit_codes.NO_KEY,
    exit_codes.BAD_INPUT,
    exit_codes.NO_SANDBOX,
    exit_codes.BAD_CONFIG,
    exit_codes.UNTRUSTED,
)
_NO_ANSWER = "(This is a rehearsal: the answer comes later. Assume a sensible one, and go on.)"
_HOST_BACKEND = "commands of the host backend have no copy to work on"


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalSheet:
    """The needs of a task: permissions, answers to questions, cost.

    `error` is the reason why it cannot run at all, `note` why the rehearsal did not succeed, such as a denied host.
    """

    manifest: Manifest
    questions: tuple[str, ...] = ()
    cost_usd: float = 0.0
    rounds: int = 0
    exit_code: int = 0
    answer: str = ""
    error: str = ""
    note: str = ""

    @property
    def needs_nothing(self) -> bool:
        """Whether there is nothing to grant or answer."""
        return self.manifest.is_empty and not self.questions


class Rehearsal:
    """Runs the program on copies. `program` is the beginning of its command line."""

    def __init__(self, *, program: Sequence[str], environ: Mapping[str, str], data: Path) -> None:
        self._program = tuple(program)
        self._environ = environ
        self._store = SessionStore(data)

    async def plan(self, request: TaskRequest) -> RehearsalSheet:
        """Only plan a task, and return the needs of its steps."""
        model = ("--model", request.config.model) if request.config.model else ()
        folder = ("-C", request.cwd) if request.cwd else ()
        words = ("plan", "--output-format", "json", *model, *folder, *_settings(request))
        plan = await self._run((*words, "--", request.prompt), Path.home())
        sheet = _sheet_of(plan, (), rounds=0)
        given = plan.get("manifest")
        manifest = decode(Manifest, given, extra="ignore") if given else Manifest()
        # The run makes a plan of its own, which has another hash; it may do what this one needs.
        return replace(sheet, manifest=replace(manifest, plan=""))

    async def run(self, request: TaskRequest) -> RehearsalSheet:
        """Run a task on copies until it needs nothing new. Raises InputError if it cannot be rehearsed."""
        if request.backend == "host":
            raise InputError(_HOST_BACKEND, "rehearse the plan only: --rehearse=plan")
        needed, cost, dearest, rounds = Manifest(), 0.0, 0.0, 0
        for _ in range(_MAX_ROUNDS):
            sheet = await self._round(request, replace(needed, hosts=(), tools=()))
            cost, dearest, rounds = cost + sheet.cost_usd, max(dearest, sheet.cost_usd), rounds + 1
            missing = needed.missing(sheet.manifest)
            needed = needed.merge(sheet.manifest)
            if missing.is_empty or replace(missing, hosts=(), tools=()).is_empty:
                break
        limit = round(dearest * _COST_FACTOR, 4) or None
        return replace(sheet, manifest=replace(needed, max_usd=limit), cost_usd=cost, rounds=rounds)

    async def _round(self, request: TaskRequest, granted: Manifest) -> RehearsalSheet:
        with TempDir() as folder:
            copy = await asyncio.to_thread(self._copy, request, folder / "copy")
            sheet = folder / "granted.toml"
            sheet.write_text(toml_manifest(granted))
            words = ["run", "--input-format", "stream-json", "--output-format", "stream-json", *_settings(request)]
            # Anything not on the sheet is denied and recorded; only questions are asked.
            words += [
                "--set",
                "approval_mode=never",
                "--manifest",
                str(sheet),
                *(("-C", str(copy)) if copy else ("--scratch",)),
            ]
            # Separate sessions and memory, discarded as well.
            environ = {**self._environ, "AGENT_SANDBOX": str(folder / "data")}
            process = await AgentProcess.start((*self._program, *words), environ, folder)
            try:
                return await _drive(process, request)
            finally:
                await process.end()

    def _copy(self, request: TaskRequest, target: Path) -> Path | None:
        """Copy the task's folder; None if the task starts with an empty folder or clones a repository."""
        source = Path(request.cwd) if request.cwd else None
        if source is None and request.session_id:
            source = self._store.folder_for(request.session_id).workspace
        if source is None or not source.is_dir():
            return None
        shutil.copytree(source, target, symlinks=True, ignore_dangling_symlinks=True)
        return target

    async def _run(self, words: Sequence[str], cwd: Path) -> JsonObject:
        process = await AgentProcess.start((*self._program, *words), self._environ, cwd)
        try:
            await process.close_input()
            document = json.loads(await process.read_all())
        except ValueError as error:
            raise AgentError(f"the rehearsal failed: {process.last_words or 'it reported nothing'}") from error
        finally:
            await process.end()
        return document if isinstance(document, dict) else {}


async def _drive(process: AgentProcess, request: TaskRequest) -> RehearsalSheet:
    """Follow a run to its end; record questions, and answer them as an unattended run would."""
    config = config_as_json(request.config)
    await process.send({"type": "request", "text": request.prompt, "config": config})
    asked: list[str] = []
    async for event in process.events():
        match event.get("type"):
            case "question.asked":
                asked.append(_question_text(event))
                await process.send({"type": "answer", "question_id": event["question_id"], "answer": _NO_ANSWER})
            case "result":
                return _sheet_of(event, tuple(asked), rounds=1)
            case _:
                pass
    raise AgentError(f"the rehearsal failed: {process.last_words or 'it reported nothing'}")


def _question_text(event: JsonObject) -> str:
    options = event.get("options")
    choices = ", ".join(map(str, options)) if isinstance(options, Sequence) else ""
    return f"{event['question']} ({choices})" if choices else str(event["question"])


def _sheet_of(result: JsonObject, asked: tuple[str, ...], *, rounds: int) -> RehearsalSheet:
    missing = result.get("missing")
    code = int(str(result.get("exit_code", exit_codes.FAILED)))
    problem = str(result.get("error") or "")
    return RehearsalSheet(
        manifest=decode(Manifest, missing, extra="ignore") if isinstance(missing, Mapping) else Manifest(),
        questions=tuple(dict.fromkeys(asked)),
        cost_usd=float(str(result.get("total_cost_usd") or 0.0)),
        rounds=rounds,
        exit_code=code,
        answer=str(result.get("result") or ""),
        error=problem if code in _CANNOT_START else "",
        note="" if code in (exit_codes.OK, *_CANNOT_START) else problem,
    )


def _settings(request: TaskRequest) -> list[str]:
    flags = ["--backend", request.backend] if request.backend else []
    for name, value in request.settings.items():
        flags += ["--set", f"{name}={value}"]
    return flags


def with_grants(request: TaskRequest, sheet: RehearsalSheet, answers: Mapping[str, str]) -> TaskRequest:
    """Return the request with exactly the granted permissions and the given answers."""
    told = "\n".join(f"{question}\n{answer}" for question, answer in answers.items())
    instructions = "\n\n".join(part for part in (request.config.custom_instructions, told) if part)
    config = replace(request.config, custom_instructions=instructions)
    return replace(request, config=config, grants=sheet.manifest, is_unattended=True)
