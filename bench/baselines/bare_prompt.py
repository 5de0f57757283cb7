"""Baseline for a request at the prompt: the standard library sends a body for every line and prints the reply."""

import sys
from http.client import HTTPConnection
from pathlib import Path

address, path = sys.argv[1:]
_, _, host, *rest = address.split("/")
content = Path(path).read_bytes()
headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-0123456789abcdef"}
connection = HTTPConnection(host)
print("Ctrl-D ends", flush=True)
for _ in sys.stdin:
    connection.request("POST", f"/{'/'.join(rest)}", content, headers)
    response = connection.getresponse()
    while chunk := response.read1():
        print(chunk.decode(), end="", flush=True)
