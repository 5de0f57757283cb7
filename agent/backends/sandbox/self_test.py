"""The self-test: real escapes, tried in the sandbox before any command runs in it."""

import errno
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from agent.backends.process.orphans import list_pids
from agent.backends.sandbox.bubblewrap.sandboxed_process import COULD_NOT_START
from agent.backends.sandbox.runner import SandboxCommandRunner, install_hint
from agent.config.user_dirs import os_environ, temp_folder
from agent.vocabulary.errors import SandboxError
from tooling.contract.command import CommandOutput, CommandRequest
from tooling.contract.fast_dataclass import dataclass
from tooling.files.temp_dir import TempDir

# It takes a tenth of a second; on a machine with a hundred busy processes it takes a hundred times as long.
TIMEOUT_S = 60.0

_DONE_LINE = "self-test done"
# Each line tries one forbidden thing and reports success. None does any harm, because a leaky sandbox lets them through
# to the machine. They use shell builtins where possible, because every program started here delays every run. `bait` is
# a folder outside the sandbox with a file `secret` in it.
_SCRIPT = r"""
bait=$1 port=$2 pid=$3 born=$4 mark=$5
say() { echo "escaped $1"; }
{ : > "$bait/written"; } 2>/dev/null
{ read -r word < "$bait/secret"; } 2>/dev/null && say read-outside
{ read -r word < "/proc/1/root$bait/secret"; } 2>/dev/null && say read-through-proc
{ : > "/proc/1/root$bait/written-through-proc"; } 2>/dev/null
for file in ~/.ssh/id_* ~/.aws/credentials ~/.netrc ~/.bash_history /etc/shadow; do
  { read -r word < "$file"; } 2>/dev/null && say read-secret
done
[[ -e /usr/lib/os-release ]] && { : >> /usr/lib/os-release; } 2>/dev/null && say write-system
(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && say network
{ read -r line < "/proc/$pid/stat"; } 2>/dev/null && [[ " $line " == *" $born "* ]] && say see-processes
for file in /proc/[0-9]*/environ; do
  { while IFS= read -r -d '' entry; do [[ $entry == *API_KEY=* ]] && say read-environment; done < "$file"; } 2>/dev/null
done
while read -r name value; do
  [[ $name == CapEff: && $value != 0000000000000000 ]] && say keep-capabilities
  [[ $name == Seccomp: && $value != 2 ]] && say run-unfiltered
done 2>/dev/null < /proc/self/status
unshare -U true 2>/dev/null && say make-namespace
mkdir -p "$bait/mount" 2>/dev/null && mount -t tmpfs none "$bait/mount" 2>/dev/null && say mount && umount "$bait/mount"
setsid sleep "$mark" </dev/null >/dev/null 2>&1 &
echo "self-test done"
"""
ESCAPE_NAMES = (
    "write-outside",
    "write-through-proc",
    "write-system",
    "read-outside",
    "read-through-proc",
    "read-secret",
    "read-environment",
    "network",
    "see-processes",
    "keep-capabilities",
    "run-unfiltered",
    "make-namespace",
    "mount",
    "survive",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One escape that was tried, and whether the sandbox blocked it."""

    name: str
    is_blocked: bool


async def self_test(runner: SandboxCommandRunner) -> tuple[Probe, ...]:
    """Try to escape and return the probes. Raises SandboxError if one succeeds or the sandbox cannot start."""
    with TempDir(temp_folder(os_environ())) as bait:
        secret = bait / "secret"
        secret.write_text(f"{os.urandom(32).hex()}\n")
        probes = await _run_probes(runner, bait)
        secret.unlink()
    if escaped := [probe.name for probe in probes if not probe.is_blocked]:
        name = runner.describe().name
        raise SandboxError(f"the {name} sandbox does not work here: {', '.join(escaped)}", hint=install_hint())
    return probes


# Landlock protects less, so it must be chosen explicitly.
START_HINT = (
    "`agent doctor` tries it again; use Landlock, which protects less, with --set sandbox_type=landlock, or --backend "
    "host, which asks before every command"
)


DOCKER_HINT = "the image needs bash and python3; `agent doctor` shows engine and image"
OPEN_FILES_HINT = "allow more open files: ulimit -n 1024"


class SandboxStartError(SandboxError):
    """The sandbox is installed but cannot start, for example because namespaces are forbidden."""


def could_not_start(problem: OSError) -> bool:
    """Whether an error is that of the sandbox, not of the command in it."""
    return str(problem).startswith(COULD_NOT_START)


def start_error(name: str, problem: OSError) -> SandboxStartError:
    """Return the error for a sandbox that cannot start, with a hint."""
    # Bubblewrap writes its own error last.
    reason = str(problem).removeprefix(COULD_NOT_START).splitlines()[-1]
    is_out_of_files = problem.errno in (errno.EMFILE, errno.ENFILE)
    if name == "docker":
        return SandboxStartError(f"{name} cannot start: {reason}", hint=DOCKER_HINT)
    return SandboxStartError(f"{name} cannot start: {reason}", hint=OPEN_FILES_HINT if is_out_of_files else START_HINT)


async def _run_probes(runner: SandboxCommandRunner, bait: Path) -> tuple[Probe, ...]:
    # A number of seconds that no other process sleeps.
    mark = f"86399.{int.from_bytes(os.urandom(4)) % 10**9:09d}"
    name = runner.describe().name
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        args = (str(bait), str(listener.getsockname()[1]), str(os.getpid()), _start_time(), mark)
        request = CommandRequest(
            argv=("bash", "-c", _SCRIPT, "self-test", *args),
            cwd=runner.sandbox.policy.writable[0],
            timeout_s=TIMEOUT_S,
            only_reads=True,
        )
        try:
            output = await runner.run(request)
        except OSError as problem:
            raise start_error(name, problem) from problem
    lines = output.output.decode(errors="replace").splitlines()
    if _DONE_LINE not in lines:
        raise SandboxStartError(
            f"{name} does not work: {_failure_reason(output)}", hint=DOCKER_HINT if name == "docker" else START_HINT
        )
    escaped = {line.removeprefix("escaped ") for line in lines if line.startswith("escaped ")}
    escaped |= set(_find_outside_traces(bait, mark))
    return tuple(Probe(name=name, is_blocked=name not in escaped) for name in ESCAPE_NAMES)


def _find_outside_traces(bait: Path, mark: str) -> Iterator[str]:
    if (bait / "written").exists():
        yield "write-outside"
    if (bait / "written-through-proc").exists():
        yield "write-through-proc"
    # Not with `glob`, which raises for a process that is just ending.
    for pid in list_pids():
        try:
            if mark.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                continue
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
        yield "survive"


def _start_time() -> str:
    """Return the kernel's start time of this process: together with the process id it is unique."""
    try:
        return Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "unknown"


def _failure_reason(output: CommandOutput) -> str:
    if output.timed_out:
        return f"the self-test did not end within {TIMEOUT_S:.0f} s"
    text = output.output.decode(errors="replace").strip()
    return text.splitlines()[-1] if text else f"exit code {output.exit_code}"
