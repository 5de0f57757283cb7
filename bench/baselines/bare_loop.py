"""Baseline for turns: the standard library sends a body repeatedly, and runs a command with bash each time."""

import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

address, path, count = sys.argv[1:]
_, _, host, *rest = address.split("/")
content = Path(path).read_bytes()
headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-0123456789abcdef"}
connection = HTTPConnection(host)
for number in range(int(count) + 1):
    connection.request("POST", f"/{'/'.join(rest)}", content, headers)
    connection.getresponse().read()
    if number < int(count):
        subprocess.run(["bash", "-c", f"true {number}"], capture_output=True, check=True)
