"""A private Docker engine for the tests of one session: own folders, own network, an image of this host's packages.

Engines of several sessions can run at the same time: each one is in a network namespace of its own, or has a bridge and
a subnet of its own.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.programs import require

IMAGE = "windlass-test:1"
# The owner of workspaces: commands in a container never run as root.
OWNER = 65534
_START_S = 60
_MAX_BRIDGES = 100
_PACKAGES = """
    base-files base-passwd bash coreutils dash debianutils diffutils findutils grep gzip hostname libc-bin login
    ncurses-base sed tar util-linux procps git python3 ca-certificates mawk mount
"""
# Prints a tar of the files of these packages and of all that they depend on: no registry, no download.
_IMAGE_SCRIPT = r"""
set -euo pipefail
depends=(apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces
    --no-enhances)
names=$("${depends[@]}" "$@" | grep -E '^[a-z0-9]' | sort -u)
names=$(dpkg-query -W -f '${db:Status-Abbrev} ${binary:Package}\n' $names 2>/dev/null | awk '/^ii/{print $2}' || true)
{
    dpkg-query -L $names | grep '^/' | grep -vE '^/usr/share/(doc|man|locale|info)/|^/\.$' \
        | grep -vxE '/(bin|sbin|lib|lib64|lib32|libx32)?' | sed -E 's#^/(bin|sbin|lib|lib64)/#/usr/\1/#'
    find /etc/ssl/certs
    printf '%s\n' /bin /sbin /lib /lib64 /etc/passwd /etc/group /etc/nsswitch.conf /usr/bin/awk /etc/alternatives/awk
} | sort -u | while read -r path; do if [ -e "$path" ] || [ -L "$path" ]; then echo "${path#/}"; fi; done \
    | tar -C / --no-recursion --numeric-owner -c -T -
"""


@contextmanager
def run_engine(*, publishes_ports: bool = False) -> Iterator[Path]:
    """Start an engine, import the image and yield the engine's socket; everything is removed at the end.

    Containers have no network, unless the engine `publishes_ports`: they can then be reached on 127.0.0.1, and reach
    this machine, but nothing else.
    """
    require("dockerd", "docker", "unshare", "setpriv", "ip")
    if os.getuid():
        pytest.skip("a private Docker engine needs root")
    root = Path(tempfile.mkdtemp(prefix="wl-engine-"))
    socket = root / "docker.sock"
    with _own_bridge() if publishes_ports else nullcontext(None) as bridge:
        log = (root / "log").open("wb")
        engine = subprocess.Popen(
            _engine_argv(root, bridge), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _wait_until_ready(engine, socket, root / "log")
            _import_image(socket)
            yield socket
        finally:
            _remove_containers(socket)
            engine.terminate()
            engine.wait(timeout=60)
            log.close()
            _remove(root)


def _engine_argv(root: Path, bridge: str | None) -> list[str]:
    # An engine without a bridge deletes the bridge of every other one, unless it has a network of its own. Both end
    # with the test session, even if that is killed.
    own_network = ("unshare", "--net", "--") if bridge is None else ()
    return [
        *("setpriv", "--pdeathsig", "TERM", *own_network, "dockerd", "--host", f"unix://{root / 'docker.sock'}"),
        *("--data-root", str(root / "data"), "--exec-root", str(root / "exec"), "--pidfile", str(root / "pid")),
        *("--bridge", bridge or "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"),
        *("--ip-masq=false", "--log-level", "warn"),
    ]


@contextmanager
def _own_bridge() -> Iterator[str]:
    """Create a bridge that no other session uses; the lock outlives no session, a bridge that was left is replaced."""
    for number in range(1, _MAX_BRIDGES):
        with Path("/tmp", f"wl-bridge-{number}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            name = f"wl-test-{number}"
            subprocess.run(["ip", "link", "delete", name], capture_output=True, check=False)
            subprocess.run(["ip", "link", "add", name, "type", "bridge"], check=True)
            try:
                subprocess.run(["ip", "address", "add", f"10.213.{number}.1/24", "dev", name], check=True)
                subprocess.run(["ip", "link", "set", name, "up"], check=True)
                yield name
            finally:
                subprocess.run(["ip", "link", "delete", name], check=True)
            return
    pytest.fail("too many Docker engines of tests run on this machine", pytrace=False)


def docker(socket: Path, *words: str) -> str:
    """Run the docker client and return its output."""
    done = subprocess.run(
        ["docker", *words], env={**os.environ, "DOCKER_HOST": f"unix://{socket}"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _wait_until_ready(engine: "subprocess.Popen[bytes]", socket: Path, log: Path) -> None:
    env = {**os.environ, "DOCKER_HOST": f"unix://{socket}"}
    deadline = time.monotonic() + _START_S
    while subprocess.run(["docker", "info"], env=env, capture_output=True).returncode:
        if engine.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"the engine did not start: {log.read_text()[-2000:]}", pytrace=False)
        time.sleep(0.1)


def _import_image(socket: Path) -> None:
    env = {**os.environ, "DOCKER_HOST": f"unix://{socket}"}
    script = ["bash", "-c", _IMAGE_SCRIPT, "image", *_PACKAGES.split()]
    with subprocess.Popen(script, stdout=subprocess.PIPE) as tar:
        change = ("--change", "ENV PATH=/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin")
        subprocess.run(["docker", "import", *change, "-", IMAGE], env=env, stdin=tar.stdout, check=True)


def _remove_containers(socket: Path) -> None:
    """Remove what tests left, which an engine that stops would leave running under its shims."""
    env = {**os.environ, "DOCKER_HOST": f"unix://{socket}"}
    script = "docker ps -aq | xargs -r docker rm -f"
    subprocess.run(["bash", "-c", script], env=env, capture_output=True, check=False, timeout=_START_S)


def _remove(root: Path) -> None:
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((path for path in mounts if path.startswith(f"{root}/")), reverse=True):
        subprocess.run(["umount", mount], check=False)
    shutil.rmtree(root, ignore_errors=True)
