"""A server that speaks the protocol of S3, as a process of its own on this machine."""

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from agent.service.workspaces.storage import BucketSettings

_START_S = 60
ACCESS_KEY, SECRET_KEY = "test-access-key", "test-secret-key"


@contextmanager
def run_s3_server(bucket: str) -> Iterator[BucketSettings]:
    """Start the server with a bucket, and yield how to reach it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=env,
    )
    try:
        _create_bucket(server, port, bucket)
        yield BucketSettings(
            bucket=bucket, endpoint=f"http://127.0.0.1:{port}", access_key=ACCESS_KEY, secret_key=SECRET_KEY
        )
    finally:
        server.kill()
        server.wait()


def _create_bucket(server: "subprocess.Popen[bytes]", port: int, bucket: str) -> None:
    deadline = time.monotonic() + _START_S
    while True:
        assert server.poll() is None, "the S3 server did not start"
        with contextlib.suppress(OSError), contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as http_:
            http_.request("PUT", f"/{bucket}", headers={"Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/x"})
            assert http_.getresponse().status == 200
            return
        assert time.monotonic() < deadline, "the S3 server does not answer"
        time.sleep(0.1)
