"""The `mcpServers` file: what is read, what is refused, and which servers a request offers."""

import pytest

from tooling.approvals.rule_text import covers_tool
from tooling.mcp.imports import read_foreign_file
from tooling.mcp.listing import full_name
from tooling.mcp.servers import offered_servers, parse_servers, safe_name

PROGRAM = {"command": "x"}


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({}, "needs either a command or a url"),
        ({"command": "x", "url": "https://example.org"}, "needs either a command or a url"),
        ({"url": "ftp://example.org"}, "the url must start with"),
        ({"type": "sse", "url": "https://example.org"}, "the transport sse is not supported"),
        ({"command": "x", "timeout_ms": 0}, "time limits must be more than 0"),
        ({"command": "x", "args": "y"}, "args: expected a list"),
    ],
)
def test_a_wrong_entry_is_named_and_the_others_are_used(entry: object, problem: str) -> None:
    file = parse_servers({"mcpServers": {"bad": entry, "good": PROGRAM}})
    assert [server.name for server in file.servers] == ["good"]
    assert file.problems[0].startswith("MCP server bad: ")
    assert problem in file.problems[0]


@pytest.mark.parametrize("name", ["a__b", "a_", "_a", "a b!", "ä-ö", "a___"])
def test_a_rule_for_one_server_never_covers_another(name: str) -> None:
    safe = safe_name(f"{name}x")
    other = safe_name(name) if any(char.isascii() and char.isalnum() for char in name) else "z"
    assert "__" not in safe
    assert not covers_tool(f"mcp__{other}", full_name(f"{other}y", "tool"))
    assert covers_tool(f"mcp__{other}", full_name(other, "tool"))


def test_two_servers_with_the_same_name_are_not_mixed_up() -> None:
    file = parse_servers({"mcpServers": {"a b": PROGRAM, "a_b": PROGRAM}})
    assert (len(file.servers), file.problems) == (1, ("MCP server a_b: another server is called a_b already",))


def test_a_request_offers_the_servers_that_it_names() -> None:
    servers = parse_servers(
        {"mcpServers": {"git": PROGRAM, "on": {**PROGRAM, "enabled": True}, "off": {**PROGRAM, "disabled": True}}}
    ).servers
    offered = [
        [server.name for server in offered_servers(servers, [text])]
        for text in ("look at GIT.", "the digits of off", "git-hub and legit")
    ]
    assert offered == [["git", "on"], ["on"], ["on"]]


def test_fields_that_would_allow_tools_are_not_imported(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path), "settings.json")
    path.write_text('{"servers": {"a": {"command": "x", "alwaysAllow": ["y"], "env": {"K": "${env:HOME}"}}}} // end')
    [found] = read_foreign_file(path)
    assert (found.entry, found.notes) == ({"command": "x", "env": {"K": "${HOME}"}}, ("left out: alwaysAllow",))
