"""Baseline for a first request: plain Python and httpx post a body and read the streamed reply."""

import sys

import httpx

url, path = sys.argv[1:]
with open(path, "rb") as file:  # noqa: PTH123 (the shortest script: imports nothing else)
    content = file.read()
headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-0123456789abcdef"}
with httpx.Client() as client, client.stream("POST", url, content=content, headers=headers) as response:
    for _ in response.iter_bytes():
        pass
