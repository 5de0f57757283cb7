"""A private Docker engine for the tests of one session: own folders, no network, an image of this host's packages."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.programs import require

IMAGE = "windlass-test:1"
# The owner of workspaces: commands in a container never run as root.
OWNER = 65534
_START_S = 60
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
def run_engine() -> Iterator[Path]:
    """Start an engine, import the image and yield the engine's socket; everything is removed at the end."""
    require("dockerd", "docker", "unshare")
    if os.getuid():
        pytest.skip("a private Docker engine needs root")
    root = Path(tempfile.mkdtemp(prefix="wl-engine-"))
    socket = root / "docker.sock"
    log = (root / "log").open("wb")
    # In a network of its own it cannot touch the bridge of another engine.
    engine = subprocess.Popen(
        [
            *("unshare", "--net", "--", "dockerd", "--host", f"unix://{socket}", "--data-root", str(root / "data")),
            *("--exec-root", str(root / "exec"), "--pidfile", str(root / "pid"), "--bridge=none", "--iptables=false"),
            *("--ip-forward=false", "--log-level", "warn"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        _wait_until_ready(engine, socket, root / "log")
        _import_image(socket)
        yield socket
    finally:
        engine.terminate()
        engine.wait(timeout=60)
        log.close()
        _remove(root)


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


def _remove(root: Path) -> None:
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((path for path in mounts if path.startswith(f"{root}/")), reverse=True):
        subprocess.run(["umount", mount], check=False)
    shutil.rmtree(root, ignore_errors=True)
