"""The box of a run: opened and tested while the model thinks, ready before the first command needs it."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent.vocabulary.errors import SandboxError
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.fast_dataclass import dataclass
from tooling.web.network_attempt import Attempt

if TYPE_CHECKING:
    from agent.backends.egress.proxy import EgressProxy
    from agent.backends.sandbox.runner import SandboxCommandRunner

# The first request to the model goes out before the box is looked at.
HEAD_START_S = 0.03
LANDLOCK = "landlock"
HTTPS = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxPlan:
    """What the box of a run shows, allows and tells."""

    workspace: Path
    extra_dirs: tuple[Path, ...]
    hidden: tuple[Path, ...]
    environ: Mapping[str, str]
    allow_net: tuple[str, ...]
    deny_net: tuple[str, ...]
    socket_dir: Path
    on_attempt: Callable[[Attempt], None]
    warn: Callable[[str], None]
    on_broken: Callable[[SandboxError], None]


class BoxedRunner:
    """A CommandRunner that runs nothing before its box has held against real escapes."""

    def __init__(self, plan: BoxPlan) -> None:
        self._plan = plan
        self._opening: asyncio.Task[SandboxCommandRunner] | None = None
        self._proxy: EgressProxy | None = None
        self._is_closed = False

    def begin(self) -> None:
        """Open and test the box in the background."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())

    async def ready(self) -> None:
        """Return when the box is known to hold; raises SandboxError when it does not."""
        await self._opened()

    async def run(self, request: CommandRequest) -> CommandOutput:
        """Run in the box, once it is known to hold."""
        runner = await self._opened()
        # As soon as this command is on its way: the loop only waits for it now, and the next one may come at once.
        asyncio.get_running_loop().call_soon(self._prepare, runner)
        return await runner.run(request)

    async def allow_host(self, host: str) -> None:
        """Let the commands from now on reach one more host."""
        runner = await self._opened()
        if self._proxy is None:
            await self._open_network(runner)
        assert self._proxy is not None
        self._proxy.allow(host)

    def lets_through(self, host: str) -> bool:
        """Say whether commands may reach a host already."""
        from agent.backends.egress.host_rules import EgressRules

        rules = self._proxy.rules if self._proxy else EgressRules(allow=self._plan.allow_net, deny=self._plan.deny_net)
        return bool(rules.decide(host, HTTPS).allowed)

    async def close(self) -> None:
        """End what still runs and remove what was made."""
        if self._opening:
            self._opening.cancel()
            await asyncio.wait({self._opening})
            if not self._opening.cancelled() and self._opening.exception() is None:
                self._is_closed = True
                await self._opening.result().discard_spare()
                self._opening.result().close()
        if self._proxy:
            await self._proxy.close()

    async def _opened(self) -> "SandboxCommandRunner":
        self.begin()
        assert self._opening is not None
        return await asyncio.shield(self._opening)

    async def _open(self) -> "SandboxCommandRunner":
        await asyncio.sleep(HEAD_START_S)
        from agent.backends.sandbox.runner import build_sandbox_runner
        from agent.backends.sandbox.self_test import settle

        try:
            runner = build_sandbox_runner(
                workspace=self._plan.workspace,
                environ=self._plan.environ,
                extra_dirs=self._plan.extra_dirs,
                hidden=self._plan.hidden,
            )
        except SandboxError as error:
            self._plan.on_broken(error)
            raise
        try:
            _, warning = await settle(runner)
            if self._plan.allow_net:
                await self._open_network(runner)
        except SandboxError as error:
            runner.close()
            self._plan.on_broken(error)
            raise
        except asyncio.CancelledError:
            runner.close()
            raise
        described = runner.describe()
        if described.name == LANDLOCK and not warning:
            lacking = "; ".join(described.not_covered)
            warning = f"bubblewrap is not installed; commands are held by Landlock, which does not cover: {lacking}"
        if warning:
            self._plan.warn(warning)
        runner.prepare(self._plan.workspace)
        return runner

    def _prepare(self, runner: "SandboxCommandRunner") -> None:
        if not self._is_closed:
            runner.prepare(self._plan.workspace)

    async def _open_network(self, runner: "SandboxCommandRunner") -> None:
        from agent.backends.egress.host_rules import EgressRules
        from agent.backends.egress.proxy import EgressProxy

        rules = EgressRules(allow=self._plan.allow_net, deny=self._plan.deny_net)
        self._proxy = EgressProxy(rules, self._plan.on_attempt)
        runner.open_network(await self._proxy.start(self._plan.socket_dir))
