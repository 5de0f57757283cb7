"""A sandbox whose commands all run in one world, restarted only if its policy changes or it has ended."""

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agent.backends.egress.relay import proxy_environment, relay_argv
from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.bubblewrap.world import World, WorldProcess
from agent.backends.sandbox.bubblewrap.world_command import WorldCommand
from agent.backends.sandbox.process_limits import WorkerLimits
from agent.backends.sandbox.types import SandboxDescription, SandboxPolicy, check_request
from tooling.contract.command import CommandRequest

BECAME_A_LINK = "has become a link, so the sandbox cannot be started safely"


class WorldSandbox:
    """Keeps the world of the commands; a subclass starts it with bubblewrap or in a container."""

    def __init__(self, policy: SandboxPolicy) -> None:
        self.policy = policy
        self._policy_of_mounts = policy
        self._mounts = _mounts_of(policy)
        self._world: World | None = None
        self._retired_worlds: list[World] = []

    def start_world(self, policy: SandboxPolicy, stdin: int) -> WorldProcess:
        """Start the first process of a world, with the control socket as its input. Raises OSError."""
        raise NotImplementedError

    def make_limits(self, policy: SandboxPolicy) -> WorkerLimits:
        """Return the limits of one command."""
        raise NotImplementedError

    def describe(self) -> SandboxDescription:
        """Return the protections of the sandbox and their limits."""
        raise NotImplementedError

    def check(self, request: CommandRequest, policy: SandboxPolicy, path: str) -> None:
        """Raise the OSError that starting the command without a sandbox would have raised."""
        check_request(request, policy, path)

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> WorldCommand:
        """Start a command. Raises OSError if it cannot be started in this sandbox."""
        policy = refresh_policy(self.policy)
        env = policy.build_environment(request.env)
        self.check(request, policy, env.get("PATH", os.defpath))
        world = self._get_world(policy)
        return world.start_command(
            request.argv,
            env,
            request.cwd,
            sinks,
            stdin=request.stdin,
            keeps_processes=request.may_leave_processes,
            wait_for=world.open_relay(policy.relay, env) if policy.relay else None,
        )

    def open_network(self, socket: Path) -> None:
        """Let later commands reach the egress proxy on this socket."""
        self.policy = with_proxy(self.policy, socket)

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs in it, not even in the background."""
        return all(world.is_idle for world in (*self._retired_worlds, self._world) if world is not None)

    async def stop(self) -> None:
        """End all commands and background processes, and wait for their end."""
        worlds = self._take_worlds()
        for world in worlds:
            with contextlib.suppress(OSError):
                await world.stop()

    def _get_world(self, policy: SandboxPolicy) -> World:
        """Return the sandbox with these mounts. One with other mounts ends after its commands."""
        if policy is not self._policy_of_mounts:
            self._policy_of_mounts, self._mounts = policy, _mounts_of(policy)
        mounts = self._mounts
        if self._world is None or not self._world.is_usable(mounts):
            if self._world is not None:
                self._retire(self._world)
            self._world = None
            self._world = World(
                mounts,
                lambda stdin: self.start_world(mounts, stdin),
                lambda: self.make_limits(policy),
            )
        return self._world

    def _retire(self, world: World) -> None:
        if world.is_idle:
            world.close()
        else:
            self._retired_worlds.append(world)

    def _take_worlds(self) -> list[World]:
        worlds = [*self._retired_worlds, *([self._world] if self._world else [])]
        self._world, self._retired_worlds = None, []
        return worlds

    def close(self) -> None:
        """End all commands and background processes."""
        for world in self._take_worlds():
            world.close()


def with_proxy(policy: SandboxPolicy, socket: Path) -> SandboxPolicy:
    """Return a policy whose commands reach the proxy through a relay in the sandbox."""
    proxy_dir = policy.proxy_dir if socket.parent == policy.proxy_dir else None
    return replace(
        policy, proxy_dir=proxy_dir, proxy_socket=socket, proxy_env=proxy_environment(), relay=relay_argv(())
    )


def refresh_policy(policy: SandboxPolicy) -> SandboxPolicy:
    """Drop paths that the user has removed since the start. Raises PermissionError for one that became a link.

    Commands can do neither, because in the sandbox these paths are mount points.
    """
    watched = (*policy.pinned, *policy.protected, *policy.frozen, *policy.thawed)
    gone = {path for path in (*watched, *policy.hidden_folders, *policy.hidden_files) if not _still_exists(path)}
    if not gone:
        return policy

    def left(paths: tuple[Path, ...]) -> tuple[Path, ...]:
        return tuple(path for path in paths if path not in gone)

    return replace(
        policy,
        pinned=left(policy.pinned),
        protected=left(policy.protected),
        frozen=left(policy.frozen),
        thawed=left(policy.thawed),
        hidden_folders=left(policy.hidden_folders),
        hidden_files=left(policy.hidden_files),
    )


def _still_exists(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(mode):
        raise PermissionError(errno.EPERM, BECAME_A_LINK, str(path))
    return True


def _mounts_of(policy: SandboxPolicy) -> SandboxPolicy:
    """Return the part of a policy that cannot change while the sandbox runs."""
    is_in_folder = policy.proxy_socket is not None and policy.proxy_socket.parent == policy.proxy_dir
    socket = None if is_in_folder else policy.proxy_socket
    return replace(policy, proxy_socket=socket, proxy_env={}, relay=(), environment={})
