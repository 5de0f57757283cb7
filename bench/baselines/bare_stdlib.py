"""Baseline for a first request: the standard library alone posts a body and reads the streamed reply."""

import sys
from http.client import HTTPConnection

address, path = sys.argv[1:]
_, _, host, *rest = address.split("/")
with open(path, "rb") as file:  # noqa: PTH123 (the shortest script: imports nothing else)
    content = file.read()
headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-0123456789abcdef"}
connection = HTTPConnection(host)
connection.request("POST", f"/{'/'.join(rest)}", content, headers)
response = connection.getresponse()
while chunk := response.read1():
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
