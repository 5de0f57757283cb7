"""The host backend: commands run on this machine without a sandbox, and every one of them needs approval."""

from collections.abc import Mapping, Sequence

from agent.backends.backend import Backend, BackendOptions
from agent.backends.process.environment import clean_environment
from agent.backends.process.host_process import HostProcess, stdin_of
from agent.backends.process.output_capture import OutputCollector
from agent.backends.process.run_process import GRACE_S, run_process
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.safety.judges import always_ask

NO_SANDBOX = "commands run on this machine without a sandbox"
BANNER = f"{NO_SANDBOX} (--backend host); every one of them needs approval"


class HostCommandRunner:
    """Runs commands without a sandbox, in the given environment."""

    def __init__(self, environment: Mapping[str, str], *, grace_s: float = GRACE_S) -> None:
        self._environment = dict(environment)
        self._grace_s = grace_s

    async def run(self, request: CommandRequest) -> CommandOutput:
        """Run until the command exits, times out or is cancelled; no process it started survives the return."""
        return await run_process(request, self._launch, grace_s=self._grace_s)

    def _launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> HostProcess:
        env = {**self._environment, **request.env}
        process = HostProcess.start(request.argv, cwd=request.cwd, env=env, sinks=sinks, stdin=stdin_of(request))
        # A child that left the process group and holds none of our pipes is found only by scanning all processes.
        process.should_kill_orphans = True
        return process


def build_backend(options: BackendOptions) -> Backend:
    """Return the backend without a sandbox."""
    return Backend(
        name="host",
        runner=HostCommandRunner(clean_environment(options.environ)),
        adjustments=(always_ask(NO_SANDBOX, "host-backend"),),
        warnings=(BANNER,),
    )
