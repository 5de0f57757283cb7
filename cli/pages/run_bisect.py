"""`agent runs bisect`: run a check at the points of a run, show the step that broke it, and undo that step."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import typer

from agent.config.load import load_settings
from agent.config.user_dirs import os_environ
from agent.diagnostics.bisect import Bisection, Trial, bisect_run
from agent.sessions.changes.changes import group_by_file, net_diff
from agent.sessions.changes.undo import UndoResult, record_undo, summarize_undo, undo, undo_request
from agent.sessions.checkpoints.points import Point, RunHistory, call_name
from agent.sessions.checkpoints.recovery import record_lost_changes
from agent.sessions.checkpoints.scratch_copy import copy_folder
from agent.sessions.store import SessionLock
from agent.sessions.views.evidence import Evidence, collect_evidence
from agent.sessions.views.listing import RunRef
from agent.vocabulary import exit_codes
from cli.pages.pages import indent_lines, one_line, print_json, print_lines, print_notice, print_table, stdout_colors
from cli.pages.run_pages import render_evidence
from cli.run.standalone_call import CallOptions, run_standalone
from cli.screen.diff import color_diff
from cli.screen.sanitize import sanitize
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import encode
from tooling.files.blobs import BlobStore
from tooling.files.temp_dir import TempDir
from tooling.safety.secrets.redact import Redactor

ENDINGS = {
    "fails_before": "the check fails already before the first change of the run",
    "passes_after": "the check passes at the end of the run",
    "cannot_run": "the check cannot be run",
    "refused": "the check was not allowed",
}
FIRST_FAILURE = "the check fails since {name}"
SIDE_BY_SIDE = "{steps} ran at the same time, and may be the cause"
_OUTPUT_LINES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectOptions:
    """Options of a bisection: the check, the output format, and whether to undo the step without asking."""

    check: str
    call: CallOptions
    as_json: bool
    is_undone: bool


def run_bisect(ref: RunRef, options: BisectOptions) -> int:
    """Bisect a run, report the outcome, and return the exit code: 0 if a step was found."""
    redactor = Redactor(load_settings(environ=os_environ()).secrets)
    record_lost_changes(ref.folder, redactor)
    history = RunHistory(ref.folder, ref.run_id)
    for text in history.skipped:
        print_notice(f"not covered by the bisection: {sanitize(text)}")
    with TempDir() as scratch:
        outcome = _search(history, scratch, options)
    found = _Found(ref=ref, history=history, redactor=redactor)
    if not options.as_json:
        print_table(found.lines(outcome))
    undone = found.undo(outcome.culprit) if outcome.culprit and _wants_undo(options) else None
    if options.as_json:
        print_json(found.document(outcome, undone))
    elif undone:
        print_lines(sanitize(summarize_undo(undone)).splitlines())
    if outcome.verdict == "refused":
        return exit_codes.APPROVAL
    is_done = outcome.verdict == "found" and not (undone and undone.refused)
    return exit_codes.OK if is_done else exit_codes.FAILED


def _search(history: RunHistory, scratch: Path, options: BisectOptions) -> Bisection:
    for heap in copy_folder(history.root, scratch):
        print_notice(f"left out of the copy for its size: {heap}")
    call = replace(options.call, cwd=scratch)
    return run_standalone(
        call, lambda env: bisect_run(history, scratch, options.check, env, lambda trial: _report(trial, options))
    )


def _report(trial: Trial, options: BisectOptions) -> None:
    if not options.as_json:
        after = f"after {one_line(trial.after, 200)}" if trial.number else "before the first change"
        ending = "passed" if trial.has_passed else f"{trial.status}, exit {trial.exit_code}"
        print_notice(f"{after}: {ending}")


def _wants_undo(options: BisectOptions) -> bool:
    """Return whether to undo the step: by the flag, or by the user's answer."""
    if options.is_undone or options.as_json or not sys.stdin.isatty():
        return options.is_undone
    return typer.confirm("undo these changes?", err=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The run that was searched, to show and undo the result."""

    ref: RunRef
    history: RunHistory
    redactor: Redactor

    def diffs(self, culprit: Point) -> list[str]:
        blobs = BlobStore(self.ref.folder.blobs)
        files = [file for file in reversed(group_by_file(culprit.changes)) if file.is_changed]
        return [self.redactor.redact(diff) for file in files if (diff := net_diff(file, blobs))]

    def lines(self, outcome: Bisection) -> Iterator[str]:
        """Yield the outcome: the step with the check's output, its diff and its evidence, or why there is none."""
        culprit = outcome.culprit
        if culprit is None:
            yield ENDINGS[outcome.verdict]
            yield from map(_shown, _output_lines(outcome.trials[-1]))
            return
        yield _shown(FIRST_FAILURE.format(name=one_line(culprit.name, 400)))
        if culprit.others:
            yield _shown(SIDE_BY_SIDE.format(steps=", ".join(culprit.others)))
        number = self.history.points.index(culprit) + 1
        yield from map(_shown, _output_lines(next(trial for trial in outcome.trials if trial.number == number)))
        for diff in self.diffs(culprit):
            yield from ("", *color_diff(sanitize(diff).rstrip("\n"), stdout_colors()).split("\n"))
        yield from ("", *map(_shown, render_evidence(self.evidence(culprit))))

    def evidence(self, culprit: Point) -> Evidence:
        """Return the evidence for a step, for the lead only that of one call; its changes are shown as one diff."""
        evidence = collect_evidence(self.ref.folder, self.ref.run_id, culprit.step_id)
        calls = [call for call in evidence.step.calls if call_name(call.name, call.input) == culprit.call]
        return replace(
            evidence,
            step=replace(evidence.step, calls=tuple(calls) if culprit.call else evidence.step.calls, changes=()),
        )

    def undo(self, culprit: Point) -> UndoResult:
        """Undo the changes between the last good point and the first bad one."""
        lock = SessionLock(self.ref.folder)
        try:
            folder, cwd = self.ref.folder, self.history.root
            files = group_by_file(culprit.changes)
            undone = undo(files, BlobStore(folder.blobs), cwd=cwd, is_forced=False, redact=self.redactor.redact)
            if undone.restored or undone.refused:
                record_undo(folder, undone, request=undo_request(None, culprit.name), cwd=cwd)
        finally:
            lock.release()
        return undone

    def document(self, outcome: Bisection, undone: UndoResult | None) -> dict[str, object]:
        culprit = outcome.culprit
        return {
            "verdict": outcome.verdict,
            "run_id": self.ref.run_id,
            "session_id": self.ref.folder.id,
            "points": [point.name for point in self.history.points],
            "trials": encode(outcome.trials),
            "culprit": culprit
            and {
                "step_id": culprit.step_id,
                "title": culprit.title,
                "call": culprit.call or None,
                "others": list(culprit.others),
                "paths": list(dict.fromkeys(recorded.change.path for recorded in culprit.changes)),
                "diff": "".join(self.diffs(culprit)),
            },
            "undone": encode(undone),
        }


def _shown(text: str) -> str:
    """Return foreign text without control characters on a terminal, unchanged in a pipe."""
    return sanitize(text) if sys.stdout.isatty() else text


def _output_lines(trial: Trial) -> list[str]:
    """Return the end of a check's output, which contains its error."""
    return indent_lines("\n".join(trial.output.splitlines()[-_OUTPUT_LINES:]))
