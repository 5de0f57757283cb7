"""The Docker backend: commands run in a container that is started and tested while the model responds."""

import os
import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agent.backends.backend import Backend, BackendOptions
from agent.backends.sandbox.lazy_runner import LazySandboxRunner, as_backend
from agent.vocabulary.errors import SandboxError

if TYPE_CHECKING:
    from agent.backends.docker.engine import Engine
    from agent.backends.egress.proxy import EgressProxy
    from agent.backends.sandbox.runner import SandboxCommandRunner

_FOLDER = "docker"


class DockerRunner(LazySandboxRunner):
    """A CommandRunner that runs nothing before its container has passed the self-test."""

    def __init__(self, options: BackendOptions) -> None:
        super().__init__(options)
        self._sockets = options.socket_dir / _FOLDER
        self._engine: Engine | None = None
        self._owner = os.getuid()

    async def build_runner(self) -> "SandboxCommandRunner":
        """Return the runner of the container. Raises SandboxError if there is no engine or no image."""
        from agent.backends.docker.container_sandbox import ContainerSandbox, container_policy, volumes_of
        from agent.backends.docker.engine import Engine, find_socket
        from agent.backends.sandbox.detect import build_policy
        from agent.backends.sandbox.runner import SandboxCommandRunner
        from agent.backends.sandbox.seccomp import UnknownArchitecture

        options = self._options
        self._engine = Engine(find_socket(options.environ))
        info = await self._engine.connect()
        image = await self._engine.find_image(options.image)
        policy = build_policy(
            workspace=options.workspace, environ=options.environ, extra_dirs=options.extra_dirs, hidden=options.hidden
        )
        policy = container_policy(policy, image, is_rootless=info.is_rootless)
        policy = replace(policy, outputs=tuple(path for path in options.outputs if path.is_dir()))
        self._owner = policy.uid
        self._create_folder()
        try:
            sandbox = ContainerSandbox(
                policy,
                engine=self._engine,
                workspace=options.workspace.resolve(),
                image=options.image,
                sockets=self._sockets,
                volumes=volumes_of(image),
                is_podman=info.is_podman,
            )
        except UnknownArchitecture as problem:
            raise SandboxError(f"there is no seccomp profile for this machine: {problem}", hint="") from problem
        return SandboxCommandRunner(sandbox, on_planted=options.warn)

    async def start_proxy(self, proxy: "EgressProxy") -> Path:
        """Start the proxy in a separate folder that only the user of the container can enter."""
        socket = await proxy.start(self._sockets / secrets.token_hex(8))
        if os.getuid() == 0:
            for path in (socket.parent, socket):
                os.chown(path, self._owner, -1)
        return socket

    async def close(self) -> None:
        """End running commands and close the connections to the engine."""
        await super().close()
        if self._engine is not None:
            await self._engine.close()

    def _create_folder(self) -> None:
        """Create the folder of the sockets. Its parents are private; only the folder is mounted into the container."""
        self._options.socket_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._sockets.mkdir(exist_ok=True)
        self._sockets.chmod(0o711)


def build_backend(options: BackendOptions) -> Backend:
    """Return the backend whose commands run in a container."""
    return as_backend("docker", DockerRunner(options))
