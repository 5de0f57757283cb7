"""The floor of a first request: plain Python and httpx posting a body and reading the streamed reply."""

import sys

import httpx

url, path = sys.argv[1:]
with open(path, "rb") as file:  # noqa: PTH123 (as the shortest script would: nothing more is imported)
    content = file.read()
headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-0123456789abcdef"}
with httpx.Client() as client, client.stream("POST", url, content=content, headers=headers) as response:
    for _ in response.iter_bytes():
        pass
