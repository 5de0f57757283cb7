"""The sandbox of a run, started and tested in the background while the model responds."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from agent.backends.backend import Backend, BackendOptions
from agent.vocabulary.errors import SandboxError
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.safety.judges import allow_open_hosts

if TYPE_CHECKING:
    from agent.backends.egress.host_rules import EgressRules
    from agent.backends.egress.proxy import EgressProxy
    from agent.backends.sandbox.runner import SandboxCommandRunner

LANDLOCK = "landlock"
HTTPS = 443


class LazySandboxRunner:
    """A CommandRunner that runs nothing before its sandbox has passed the self-test."""

    def __init__(self, options: BackendOptions) -> None:
        self._options = options
        self._open_task: asyncio.Task[SandboxCommandRunner] | None = None
        self._proxy: EgressProxy | None = None

    def start(self) -> None:
        """Start and test the sandbox in the background."""
        if self._open_task is None:
            self._open_task = asyncio.ensure_future(self._open())

    async def ready(self) -> None:
        """Wait for the self-test. Raises SandboxError if it fails."""
        await self._get_runner()

    async def run(self, request: CommandRequest) -> CommandOutput:
        """Run a command once the sandbox has passed the self-test. Raises SandboxError if it can no longer start."""
        runner = await self._get_runner()
        try:
            return await runner.run(request)
        except OSError as problem:
            from agent.backends.sandbox.self_test import could_not_start, start_error

            # A command can end the sandbox, and the next start may fail: that is no failure of the command.
            if not could_not_start(problem):
                raise
            error = start_error(runner.describe().name, problem)
            self._options.on_sandbox_error(error)
            raise error from problem

    async def allow_host(self, host: str) -> None:
        """Let later commands reach one more host."""
        runner = await self._get_runner()
        if self._proxy is None:
            await self._open_network(runner)
        assert self._proxy is not None
        self._proxy.allow(host)

    def is_host_allowed(self, host: str) -> bool:
        """Whether commands may already reach a host."""
        rules = self._proxy.rules if self._proxy else self._rules()
        return bool(rules.decide(host, HTTPS).allowed)

    def end_run(self) -> None:
        """Revoke the hosts that were allowed for one run, and protect the repositories that it created."""
        if self._proxy is not None:
            self._proxy.set_rules(self._rules())
        task = self._open_task
        if task is not None and task.done() and not task.cancelled() and task.exception() is None:
            task.result().protect_new_repositories()

    async def close(self) -> None:
        """End running commands and remove temporary files."""
        if self._open_task:
            self._open_task.cancel()
            await asyncio.wait({self._open_task})
            if not self._open_task.cancelled() and self._open_task.exception() is None:
                await self._open_task.result().stop()
                self._open_task.result().close()
        if self._proxy:
            await self._proxy.close()

    async def _get_runner(self) -> "SandboxCommandRunner":
        self.start()
        assert self._open_task is not None
        return await asyncio.shield(self._open_task)

    async def build_runner(self) -> "SandboxCommandRunner":
        """Return the runner of the best sandbox of this machine. Raises SandboxError or OSError."""
        from agent.backends.sandbox.runner import build_sandbox_runner

        return build_sandbox_runner(
            workspace=self._options.workspace,
            environ=self._options.environ,
            extra_dirs=self._options.extra_dirs,
            hidden=self._options.hidden,
            outputs=self._options.outputs,
            proxy_dir=self._create_proxy_dir(),
            on_planted=self._options.warn,
            sandbox_type=self._options.sandbox_type,
        )

    async def start_proxy(self, proxy: "EgressProxy") -> Path:
        """Start the proxy and return its socket."""
        return await proxy.start(self._options.socket_dir)

    async def _open(self) -> "SandboxCommandRunner":
        from agent.backends.sandbox.home_folder import IS_HOME
        from agent.backends.sandbox.runner import missing_bubblewrap_warning
        from agent.backends.sandbox.self_test import self_test, start_error

        try:
            runner = await self.build_runner()
        except SandboxError as error:
            self._options.on_sandbox_error(error)
            raise
        except OSError as problem:
            start_problem = start_error("the sandbox", problem)
            self._options.on_sandbox_error(start_problem)
            raise start_problem from problem
        try:
            await self_test(runner)
            if self._options.allow_net:
                await self._open_network(runner)
        except SandboxError as error:
            runner.close()
            self._options.on_sandbox_error(error)
            raise
        except OSError as problem:
            runner.close()
            start_problem = start_error("the sandbox", problem)
            self._options.on_sandbox_error(start_problem)
            raise start_problem from problem
        except asyncio.CancelledError:
            runner.close()
            raise
        if runner.describe().name == LANDLOCK and self._options.sandbox_type != LANDLOCK:
            self._options.warn(missing_bubblewrap_warning())
        if self._options.workspace.resolve() in runner.sandbox.policy.frozen:
            self._options.warn(IS_HOME.format(folder=self._options.workspace))
        return runner

    def _rules(self) -> "EgressRules":
        from agent.backends.egress.host_rules import EgressRules

        return EgressRules(allow=self._options.allow_net, deny=self._options.deny_net)

    def _create_proxy_dir(self) -> Path | None:
        """Return the folder of the proxy's socket, which is mounted before it is known whether a host is allowed."""
        try:
            self._options.socket_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return None
        return self._options.socket_dir

    async def _open_network(self, runner: "SandboxCommandRunner") -> None:
        from agent.backends.egress.proxy import EgressProxy

        self._proxy = EgressProxy(self._rules(), self._options.on_attempt)
        runner.open_network(await self.start_proxy(self._proxy))


def as_backend(name: str, runner: LazySandboxRunner) -> Backend:
    """Return the backend of a runner: readiness, network, and verdicts that know which hosts are open."""
    return Backend(
        name=name,
        runner=runner,
        start=runner.start,
        ready=runner.ready,
        allow_host=runner.allow_host,
        end_run=runner.end_run,
        close=runner.close,
        adjustments=(allow_open_hosts(runner.is_host_allowed),),
    )


def build_backend(options: BackendOptions) -> Backend:
    """Return the backend whose commands run in a sandbox."""
    return as_backend("sandbox", LazySandboxRunner(options))
