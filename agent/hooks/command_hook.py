"""Hook commands: user programs that read JSON from stdin and decide by exit code and output.

They run outside the sandbox, in the working folder, with a clean environment and a time limit.
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent.backends.process.environment import clean_environment, outside_of
from agent.backends.process.host_process import HostProcess
from agent.backends.process.output_capture import OutputCollector
from agent.backends.process.run_process import GRACE_S, run_process
from agent.hooks.claude_calls import ClaudeCall, claude_calls, own_arguments
from agent.hooks.command_config import CommandSpec
from agent.hooks.command_output import HookReply, read_reply
from agent.hooks.hook import CallDecision, GuardedCall, GuardHook, HookFailed, PromptDecision
from agent.workspace.git_command import find_program
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern

MAX_OUTPUT_BYTES = 256_000
# Programs that show notifications need these; none of them is a secret.
_DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_SESSION_TYPE")
_PERMISSION_MODES = {"auto-edit": "acceptEdits", "never": "dontAsk", "yolo": "bypassPermissions", "plan": "plan"}
_STRICTEST_FIRST = ("deny", "ask", "pass", "allow")
_FOLDERS = lazy_pattern(r"""(?<!\S)(["']?)(?:[^\s"'|;&]|"[^"\s]*"|'[^'\s]*')*/(?=[^\s/"'])""")
_NO_FOLDER = "/nonexistent"
SEVERAL = "changed the arguments of a call that concerns several files, which is not possible"
NO_REASON = "no reason given"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookPlace:
    """The run that hook commands receive as input.

    `start_source` is how the session starts, empty if it was already reported. `warn` shows a message to the user,
    `stop_run` ends the run.
    """

    session_id: str
    transcript: Path
    cwd: Callable[[], Path]
    approval_mode: str
    model: str
    environ: Mapping[str, str]
    extra_variables: tuple[str, ...] = ()
    start_source: str = "startup"
    warn: Callable[[str], None] = lambda message: None
    stop_run: Callable[[str], None] = lambda reason: None

    def environment(self) -> dict[str, str]:
        """Return the environment of hook commands: harmless variables, and those that the user listed.

        Nothing in it makes a program load code from the working folder, where commands can write.
        """
        folder = self.cwd()
        named = (*_DESKTOP, *self.extra_variables)
        passed = {name: self.environ[name] for name in named if name in self.environ}
        return {
            **clean_environment(outside_of(folder, self.environ)),
            # Python would load a compiled module that matches the size and mtime of its source.
            "PYTHONPYCACHEPREFIX": _NO_FOLDER,
            "PYTHONDONTWRITEBYTECODE": "1",
            **passed,
            "CLAUDE_PROJECT_DIR": str(folder),
            "WINDLASS_PROJECT_DIR": str(folder),
        }


class CommandHook(GuardHook):
    """One command for one event. `check` returns why it may no longer run; commands of a project must be trusted."""

    def __init__(
        self,
        spec: CommandSpec,
        place: HookPlace,
        *,
        check: Callable[[], str] | None = None,
        is_restricted: bool = False,
    ) -> None:
        self.spec = spec
        self._place = place
        self._check = check
        self.is_restricted = is_restricted
        # The command has its own time limit; this one covers a process that cannot be killed.
        self.timeout_s = self.guard_timeout_s = spec.timeout_s + 10

    @property
    def name(self) -> str:
        """The command without its folders, shortened for messages."""
        words = " ".join(_FOLDERS.sub(r"\1", self.spec.command).split())
        return words if len(words) <= 60 else f"{words[:57]}..."

    def is_for(self, call: GuardedCall) -> bool:
        """Whether the command runs for a call, or for a part of it."""
        return any(self._concerns(part, call) for part in claude_calls(call))

    async def check_prompt(self, prompt: str) -> PromptDecision:
        """Run the commands of SessionStart and UserPromptSubmit."""
        source = self._place.start_source
        if self.spec.event == "SessionStart" and source and self.spec.matches(source):
            reply = await self._run({"source": source, "model": self._place.model})
            return PromptDecision(context=reply.context)
        if self.spec.event != "UserPromptSubmit":
            return PromptDecision()
        reply = await self._run({"prompt": prompt})
        if reply.permission == "deny":
            return PromptDecision(refusal=reply.reason or NO_REASON)
        return PromptDecision(context=reply.context)

    async def check_call(self, call: GuardedCall) -> CallDecision:
        """Run a command of PreToolUse; the strictest decision about a part applies to the whole call."""
        if self.spec.event != "PreToolUse":
            return CallDecision()
        calls = claude_calls(call)
        replies = [await self._run_guard(part, call) for part in calls if self._concerns(part, call)]
        changed = next((reply.updated_input for reply in replies if reply.updated_input is not None), None)
        if changed is not None and len(calls) > 1:
            raise HookFailed(SEVERAL)
        decisive = min(replies, key=lambda reply: _STRICTEST_FIRST.index(reply.permission), default=HookReply())
        if decisive.permission == "allow" and len(replies) < len(calls):
            # It approved only a part of the call.
            decisive = HookReply(context=decisive.context)
        return CallDecision(
            permission=decisive.permission,
            reason=decisive.reason,
            arguments=own_arguments(call, changed) if changed is not None else None,
            context="\n".join(reply.context for reply in replies if reply.context),
        )

    async def comment_on_call(self, call: GuardedCall, output: str) -> str:
        """Run a command of PostToolUse; its objections are for the model."""
        if self.spec.event != "PostToolUse":
            return ""
        remarks = []
        for part in claude_calls(call):
            if part.is_delete or not self._concerns(part, call):
                continue
            reply = await self._run({**_call_fields(part, call), "tool_response": part.response(output)})
            remarks += [reply.reason] if reply.permission == "deny" else []
            remarks += [reply.context]
        return "\n".join(remark for remark in remarks if remark)

    async def check_answer(self, answer: str, *, is_repeated: bool) -> str:
        """Run a command of Stop; if it blocks, the agent continues."""
        if self.spec.event != "Stop":
            return ""
        reply = await self._run({"stop_hook_active": is_repeated, "last_assistant_message": answer})
        return (reply.reason or NO_REASON) if reply.permission == "deny" and reply.stop is None else ""

    async def after_execution(self, success: bool, error: str | None) -> None:  # noqa: FBT001 (a published signature)
        """Run a command of SessionEnd."""
        if self.spec.event == "SessionEnd":
            await self._run({"reason": "other" if success else error or "error"})

    def _concerns(self, part: ClaudeCall, call: GuardedCall) -> bool:
        return self.spec.matches(part.tool_name, call.tool)

    async def _run_guard(self, part: ClaudeCall, call: GuardedCall) -> HookReply:
        try:
            return await self._run(_call_fields(part, call))
        except HookFailed as failure:
            if self.spec.on_failure == "block":
                raise
            self._place.warn(f"the hook {self.name} {failure}; the call went on (onFailure: continue)")
            return HookReply()

    async def _run(self, fields: Mapping[str, object]) -> HookReply:
        reply = read_reply(self.spec, await self.run_command(fields))
        if reply.message:
            self._place.warn(f"hook {self.name}: {reply.message}")
        if reply.stop is not None:
            self._place.stop_run(f"the hook {self.name} ended the run: {reply.stop}")
        return reply

    async def run_command(self, fields: Mapping[str, object]) -> CommandOutput:
        """Run the command with an event on its stdin. Raises HookFailed if it cannot be started."""
        if self._check and (problem := self._check()):
            raise HookFailed(problem)
        place = self._place
        event = {
            "session_id": place.session_id,
            "transcript_path": str(place.transcript),
            "cwd": str(place.cwd()),
            "permission_mode": _PERMISSION_MODES.get(place.approval_mode, "default"),
            "hook_event_name": self.spec.event,
            **fields,
        }
        shell = find_program("bash", place.environ, place.cwd()) or "/bin/sh"
        request = CommandRequest(
            argv=(shell, "-c", self.spec.command),
            cwd=place.cwd(),
            timeout_s=self.spec.timeout_s,
            env=place.environment(),
            cap_bytes=MAX_OUTPUT_BYTES,
            merge_stderr=False,
        )
        with tempfile.TemporaryFile() as stdin:
            stdin.write(json.dumps(event, ensure_ascii=False, default=str).encode("utf-8", "replace"))
            stdin.seek(0)
            try:
                return await run_process(request, _launch_with(stdin.fileno()), grace_s=GRACE_S)
            except OSError as error:
                raise HookFailed(f"could not be started: {error.strerror or error}") from error


def _call_fields(part: ClaudeCall, call: GuardedCall) -> dict[str, object]:
    return {
        "tool_name": part.tool_name,
        "tool_input": part.tool_input,
        "tool_use_id": call.call_id,
        "windlass_tool": call.tool,
    }


def _launch_with(stdin: int) -> Callable[[CommandRequest, Sequence[OutputCollector]], HostProcess]:
    def launch(request: CommandRequest, sinks: Sequence[OutputCollector]) -> HostProcess:
        process = HostProcess.start(request.argv, cwd=request.cwd, env=request.env, sinks=sinks, stdin=stdin)
        process.should_kill_orphans = True
        return process

    return launch
