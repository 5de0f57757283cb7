"""The server in docs/extending.md works as the page says."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.cli.terminal_user import User, lead_call, lead_reply
from tests.house.source_tree import ROOT

PAGE = (ROOT / "docs" / "extending.md").read_text()


@pytest.mark.slow
def test_the_server_of_the_page_can_be_used(tmp_path: Path) -> None:
    home = tmp_path / "home"
    user = User(home=home)
    config, servers, work = home / ".config" / "agent", home / "servers", home / "work"
    for folder in (config, servers, work):
        folder.mkdir(parents=True)
    code = re.search(r"```python\n(# weather\.py\n.*?)```", PAGE, re.DOTALL)
    file = re.search(r'```json\n(\{\n  "mcpServers".*?)```', PAGE, re.DOTALL)
    assert code and file
    (servers / "weather.py").write_text(code[1])
    text = file[1].replace("/home/you/servers", str(servers)).replace('"python"', json.dumps(sys.executable))
    (config / "mcp.json").write_text(text)
    tested = user.agent("mcp", "test", "weather", cwd=work)
    assert tested.stdout == "weather: ok\n  mcp__weather__forecast  Tell the weather of tomorrow.\n"
    model = user.script(lead_call("mcp__weather__forecast", city="Oslo"), lead_reply("Sunny."))
    words = ("run", "--model", model, "--allow", "mcp__weather", "--output-format", "stream-json")
    ended = user.agent(*words, "ask weather about Oslo", cwd=work, AGENT_PLANNING="auto")
    outputs = [event["output"] for event in ended.events if event["type"] == "tool.completed"]
    assert outputs == ['<web origin="MCP server weather, forecast">\nOslo: sunny\n</web>']
