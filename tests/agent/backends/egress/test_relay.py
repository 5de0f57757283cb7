"""The relay in front of a command, and real tools that use the proxy from inside the sandbox."""

import functools
import hashlib
import http.server
import json
import os
import signal
import ssl
import subprocess
import threading
import zipfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from agent.backends.egress.relay import proxy_environment, relay_argv, relay_interpreter
from agent.backends.sandbox.runner import build_sandbox_runner
from tests.agent.backends.backend_cases import find_processes
from tests.agent.backends.egress.proxy_harness import ProxyHarness, certificate, free_port, run_proxy
from tests.programs import needs, require
from tooling.contract.command import CommandOutput, CommandRequest

pytestmark = pytest.mark.slow


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files without logging."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def files_over_http(folder: Path, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve a folder on loopback and yield the port."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


class NetworkedSandbox:
    """A sandbox whose commands can reach the proxy."""

    def __init__(self, proxy: ProxyHarness, workspace: Path) -> None:
        self.proxy = proxy
        self.workspace = workspace
        self._runner = build_sandbox_runner(
            workspace=workspace,
            environ={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/root")},
            proxy_socket=proxy.socket,
        )

    async def run(self, *argv: str) -> CommandOutput:
        return await self._runner.run(CommandRequest(argv=argv, cwd=self.workspace, timeout_s=60))

    async def sh(self, line: str) -> CommandOutput:
        return await self.run("bash", "-c", line)

    def close(self) -> None:
        self._runner.close()


@asynccontextmanager
async def run_sandbox(
    tmp_path: Path, ports: Sequence[int], allow: Sequence[str] = ("example.test",)
) -> AsyncIterator[NetworkedSandbox]:
    require("bwrap")
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    async with run_proxy(ports=ports, allow=allow) as here:
        found = NetworkedSandbox(here, workspace)
        try:
            yield found
        finally:
            found.close()


def run_relayed(*command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command behind the relay, without a sandbox and with a proxy that does not exist."""
    port = free_port()
    words = relay_argv(command, socket_path="/nonexistent", port=port)
    return subprocess.run(
        words,
        env={"PATH": os.environ["PATH"], **proxy_environment(port)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_command_keeps_its_arguments_output_and_exit_code() -> None:
    done = run_relayed("bash", "-c", 'printf "%s|" "$@"; echo problem >&2; exit 7', "name", "a b", "", "ü$x")
    assert (done.returncode, done.stdout, done.stderr) == (7, "a b||ü$x|", "problem\n")


def test_a_signal_ends_the_command_as_without_the_relay() -> None:
    assert run_relayed("bash", "-c", "kill -TERM $$").returncode == -15
    assert run_relayed("bash", "-c", "yes | head -1; echo ${PIPESTATUS[0]}").stdout == "y\n141\n"


def test_a_missing_command_is_reported(tmp_path: Path) -> None:
    missing = run_relayed("/nonexistent/program")
    assert (missing.returncode, missing.stderr) == (
        127,
        "network relay: /nonexistent/program: No such file or directory\n",
    )
    plain = tmp_path / "plain"
    plain.write_text("not a program")
    assert run_relayed(str(plain)).returncode == 126


def test_a_port_in_use_is_reported() -> None:
    port = free_port()
    inner = relay_argv(("true",), socket_path="/nonexistent", port=port)
    outer = relay_argv(inner, socket_path="/nonexistent", port=port)
    done = subprocess.run(outer, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (125, "network relay: cannot start: Address already in use\n")


def test_the_command_inherits_nothing_from_the_relay() -> None:
    done = run_relayed(
        *("bash", "-c"),
        "cd /proc/$$; read -r children <task/$$/children; echo [$children]; grep SigIgn status; ls fd; true",
    )
    children, ignored, *descriptors = done.stdout.splitlines()
    assert children == "[]"
    assert set(descriptors) <= {"0", "1", "2", "255"}
    changed = (1 << signal.SIGPIPE - 1) | (1 << signal.SIGXFSZ - 1)
    assert int(ignored.split()[1], 16) & changed == 0


def test_the_relay_ends_with_the_command() -> None:
    mark = f"/nonexistent/{free_port()}"
    words = relay_argv(("sleep", "60"), socket_path=mark, port=free_port())
    command = subprocess.Popen(words)
    while not find_processes(mark):
        assert command.poll() is None
    command.kill()
    command.wait()
    for _ in range(200):
        if not find_processes(mark):
            break
        threading.Event().wait(0.02)
    assert find_processes(mark) == []


@needs("curl")
async def test_the_sandbox_reaches_allowed_hosts_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "big").write_bytes(content := os.urandom(3_000_000))
    file, tls = certificate(tmp_path, "example.test")
    with files_over_http(tmp_path / "site") as plain, files_over_http(tmp_path / "site", tls) as secure:
        async with run_sandbox(tmp_path, [plain, secure]) as inside:
            (inside.workspace / "ca.pem").write_bytes(file.read_bytes())
            for number, url in enumerate((f"http://example.test:{plain}", f"https://example.test:{secure}")):
                found = await inside.sh(f"curl -sS --cacert ca.pem {url}/big -o got{number}; exit $?")
                assert (found.exit_code, found.output) == (0, b"")
                assert (inside.workspace / f"got{number}").read_bytes() == content
            other = await inside.sh("curl -sS https://other.test/")
            assert other.exit_code == 56 and b"403" in other.output
            direct = await inside.sh(f"curl -sS --noproxy '*' http://127.0.0.1:{plain}/big")
            assert direct.exit_code == 7
            outside = await inside.sh(
                f"curl -sS --noproxy example.com http://127.0.0.1:{plain}/big -o /dev/null -w '%{{http_code}}'"
            )
            assert outside.output == b"403"
    assert inside.proxy.decisions == [
        ("example.test", plain, True),
        ("example.test", secure, True),
        ("other.test", 443, False),
        ("127.0.0.1", plain, False),
    ]


@needs("curl")
async def test_a_server_inside_the_sandbox_is_reached_without_the_proxy(tmp_path: Path) -> None:
    async with run_sandbox(tmp_path, [80]) as inside:
        found = await inside.sh(
            "echo hi >page; python3 -m http.server -b 127.0.0.1 8000 >/dev/null 2>&1 & "
            "for i in $(seq 100); do curl -sf http://localhost:8000/page && break; sleep 0.05; done"
        )
        assert found.output == b"hi\n"
        assert inside.proxy.attempts == []


@needs("curl")
async def test_many_connections_can_be_open_at_the_same_time(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "page").write_bytes(b"x" * 200_000)
    with files_over_http(tmp_path / "site") as port:
        async with run_sandbox(tmp_path, [port]) as inside:
            urls = " ".join(f"http://example.test:{port}/page?{number}" for number in range(60))
            found = await inside.sh(f"curl -sS --parallel --parallel-max 30 {urls} 2>/dev/null | wc -c")
    assert found.output.split() == [b"12000000"]


def repository_site(tmp_path: Path) -> Path:
    """Create a folder that serves a repository as plain files."""
    require("git")
    source, site = tmp_path / "source", tmp_path / "site"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    (tmp_path / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.test\n")
    for words in (
        ("git", "init", "-q", str(source)),
        ("git", "-C", str(source), "commit", "-q", "--allow-empty", "-m", "first"),
        ("git", "clone", "-q", "--bare", str(source), str(site / "repo.git")),
        ("git", "-C", str(site / "repo.git"), "update-server-info"),
    ):
        subprocess.run(words, check=True, env=environment)
    return site


@pytest.mark.parametrize("is_secure", [False, True])
async def test_git_clones_through_the_proxy(tmp_path: Path, is_secure: bool) -> None:
    site = repository_site(tmp_path)
    file, tls = certificate(tmp_path, "example.test")
    with files_over_http(site, tls if is_secure else None) as port:
        async with run_sandbox(tmp_path, [port]) as inside:
            (inside.workspace / "ca.pem").write_bytes(file.read_bytes())
            url = f"{'https' if is_secure else 'http'}://example.test:{port}/repo.git"
            found = await inside.sh(
                f"export GIT_SSL_CAINFO=$PWD/ca.pem; git clone -q {url} copy && git -C copy log --format=%s"
            )
            refused = await inside.sh(f"git ls-remote {url.replace('example', 'other')}")
    assert found.output == b"first\n"
    assert refused.exit_code == 128 and b"403" in refused.output
    assert {attempt.host: attempt.allowed for attempt in inside.proxy.attempts} == {
        "example.test": True,
        "other.test": False,
    }


async def test_pip_installs_through_the_proxy(tmp_path: Path) -> None:
    simple = tmp_path / "site" / "simple" / "tiny"
    simple.mkdir(parents=True)
    name = "tiny-1.0-py3-none-any.whl"
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(simple / name, "w") as wheel:
        wheel.writestr("tiny.py", "WORD = 'tiny works'\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", f"tiny.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    (simple / "index.html").write_text(f"<a href='{name}'>{name}</a>")
    with files_over_http(tmp_path / "site") as port:
        async with run_sandbox(tmp_path, [port]) as inside:
            index = f"--index-url http://example.test:{port}/simple/ --trusted-host example.test"
            found = await inside.sh(
                f"{relay_interpreter()} -m venv env "
                f"&& env/bin/python -m pip -q --disable-pip-version-check install {index} --no-cache-dir tiny "
                "&& env/bin/python -c 'import tiny; print(tiny.WORD)'"
            )
    assert (found.exit_code, found.output) == (0, b"tiny works\n")


@needs("npm")
async def test_npm_reads_a_registry_through_the_proxy(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    with files_over_http(site) as port:
        url = f"http://example.test:{port}/"
        dist = {"tarball": f"{url}tiny.tgz", "shasum": hashlib.sha1(b"").hexdigest()}
        version = {"name": "tiny", "version": "1.2.3", "dist": dist}
        registry = {"name": "tiny", "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": version}}
        (site / "tiny").write_text(json.dumps(registry))
        async with run_sandbox(tmp_path, [port]) as inside:
            found = await inside.sh(f"npm view tiny version --registry {url}")
    assert found.output.split() == [b"1.2.3"], found.output
