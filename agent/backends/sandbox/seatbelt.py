"""The macOS sandbox: a `sandbox-exec` profile built from the policy."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agent.backends.process.host_process import HostProcess, stdin_of
from agent.backends.process.output_capture import OutputCollector
from agent.backends.sandbox.types import SandboxDescription, SandboxPolicy, check_request
from tooling.contract.command import CommandRequest

PROGRAM = Path("/usr/bin/sandbox-exec")
_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/System",
    "/Library/Developer",
    "/opt/homebrew",
    "/private/etc/ssl",
    "/private/var/db/timezone",
)
_SINGLE_FILES = ("/private/etc/localtime", "/private/etc/passwd", "/private/etc/hosts", "/private/etc/protocols")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper")

_COVERED = (
    "writes: only the workspace and added folders, without .git/hooks and .git/config",
    "reads: the system, toolchains and those folders; not the home folder",
    "network: none, or the proxy's socket when hosts are allowed",
)
_NOT_COVERED = (
    "the total memory and number of a command's processes",
    "other processes can be seen, but not signalled or changed",
)


def seatbelt_profile(policy: SandboxPolicy) -> str:
    """Return the profile; later rules win, and everything else is denied."""
    return "\n".join(_rules(policy)) + "\n"


def _rules(policy: SandboxPolicy) -> Iterator[str]:
    yield "(version 1)"
    yield "(deny default)"
    yield "(allow process-fork)"
    yield "(allow process-exec)"
    yield "(allow signal (target same-sandbox))"
    yield "(allow process-info* (target same-sandbox))"
    yield "(allow sysctl-read)"
    yield '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))'
    yield "(allow file-read-metadata)"
    yield _rule("allow file-read*", "literal", ("/", *_SINGLE_FILES, *_DEVICES))
    yield _rule("allow file-read*", "subpath", (*_SYSTEM, *map(str, (*policy.readable, *policy.toolchains))))
    yield _rule("allow file-write-data", "literal", _DEVICES)
    yield _rule("allow file-read* file-write*", "subpath", map(str, policy.writable))
    yield from _exceptions(policy)
    if policy.proxy_socket is not None:
        yield _rule("allow network-outbound", "literal", (str(policy.proxy_socket),))
        yield '(allow network* (local ip "localhost:*"))'
        yield '(allow network-outbound (remote ip "localhost:*"))'


def _exceptions(policy: SandboxPolicy) -> Iterator[str]:
    """Yield the rules that restrict writable folders."""
    if policy.pinned:
        yield _rule("deny file-write-unlink", "literal", map(str, policy.pinned))
    if policy.protected:
        yield _rule("deny file-write*", "subpath", map(str, policy.protected))
    if policy.frozen:
        yield _rule("deny file-write*", "subpath", map(str, policy.frozen))
        yield _rule("allow file-write*", "subpath", map(str, policy.thawed)) if policy.thawed else ""
    if hidden := (*policy.hidden_folders, *policy.hidden_files):
        yield _rule("deny file-read* file-write*", "subpath", map(str, hidden))


def _rule(action: str, filter_: str, paths: Iterable[str]) -> str:
    return f"({action} {' '.join(f'({filter_} {_quote(path)})' for path in paths)})"


def _quote(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class SeatbeltSandbox:
    """Starts commands under the profile."""

    def __init__(self, policy: SandboxPolicy) -> None:
        self.policy = policy

    def launch(self, request: CommandRequest, sinks: Sequence[OutputCollector]) -> HostProcess:
        """Start a command. Raises OSError if it cannot be started in this sandbox."""
        env = self.policy.build_environment(request.env)
        check_request(request, self.policy, env.get("PATH", os.defpath))
        argv = (str(PROGRAM), "-p", seatbelt_profile(self.policy), *request.argv)
        return HostProcess.start(argv, cwd=request.cwd, env=env, sinks=sinks, stdin=stdin_of(request))

    def describe(self) -> SandboxDescription:
        """Return the protections of the sandbox and their limits."""
        return SandboxDescription(name="seatbelt", covered=_COVERED, not_covered=_NOT_COVERED)

    def close(self) -> None:
        """Do nothing: there are no resources to release."""
