"""Checks the counter of the sample project, inside the sandbox."""

import socket
import subprocess
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).parent


def test_the_counter_counts() -> None:
    text = (HERE / "words.txt").read_bytes()
    assert int(subprocess.run(["./count"], input=text, capture_output=True, check=True).stdout) == len(text.split())


def test_servers_on_the_loopback_work() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: server.accept()[0].sendall(b"hello"))
        thread.start()
        with socket.create_connection(server.getsockname()) as client:
            assert client.recv(10) == b"hello"
        thread.join()


def test_there_are_temporary_files_and_a_home() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"x")
    (Path.home() / "note").write_text("x")
