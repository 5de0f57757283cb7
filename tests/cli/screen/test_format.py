"""Short texts for events."""

import pytest

from cli.screen.format import call_subject
from tooling.registry import TOOLS

PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-1\n+2\n*** Add File: b.py\n+3\n*** End Patch"
# Tool, arguments, and what the user reads about the call.
CALLS: tuple[tuple[str, dict[str, object], str], ...] = (
    ("run_command", {"command": "make\n  test", "timeout_s": 5}, "make test"),
    ("read_file", {"path": "a.py"}, "a.py"),
    ("read_file", {"path": "a.py", "offset": 40, "limit": 10, "more": ["b.py:1-9", "c.py"]}, "a.py:40, b.py:1-9, c.py"),
    ("write_file", {"path": "a.py", "content": "x = 1\n"}, "a.py"),
    ("edit_file", {"path": "a.py", "old_text": "1", "new_text": "2"}, "a.py"),
    ("apply_patch", {"patch": PATCH}, "a.py, b.py"),
    ("delete_file", {"path": "a.py"}, "a.py"),
    ("send_file", {"path": "report.pdf", "caption": "the figures"}, "report.pdf"),
    ("list_directory", {"path": "src"}, "src"),
    ("list_directory", {"path": "."}, "."),
    ("find_files", {"pattern": "*.py"}, "*.py"),
    ("find_files", {"pattern": "*.py", "path": "src"}, "*.py in src"),
    ("search_text", {"pattern": "TODO|FIXME", "path": "."}, "TODO|FIXME"),
    ("search_text", {"pattern": "TODO|FIXME", "path": "src"}, "TODO|FIXME in src"),
    ("search_text", {"pattern": "TODO", "path": "src", "glob": "*.py"}, "TODO in src/*.py"),
    ("search_text", {"pattern": "TODO", "glob": "*.py"}, "TODO in *.py"),
    ("search_web", {"query": "half up", "count": 3}, "half up"),
    ("fetch_page", {"url": "https://example.org/a"}, "https://example.org/a"),
    ("fetch_page", {"url": "https://example.org/a", "query": "rounding"}, "https://example.org/a about rounding"),
    ("run_python", {"code": "x = 1\nprint(x)"}, "x = 1 print(x)"),
    ("manage_tasks", {"action": "list"}, "list"),
    ("manage_tasks", {"action": "add", "tasks": [{"content": "read"}, {"content": "write"}]}, "add read; write"),
    ("manage_tasks", {"action": "update", "tasks": [{"id": 2, "status": "done"}]}, "update 2"),
    ("manage_jobs", {"action": "output", "id": "job-1"}, "output job-1"),
    ("schedule_task", {"action": "add", "content": "Check the build.", "delay_minutes": 5}, "add Check the build."),
    ("schedule_task", {"action": "cancel", "task_id": "t-1"}, "cancel t-1"),
    ("memory", {"action": "append", "content": "Use tabs."}, "append Use tabs."),
    ("ask_user", {"question": "Which one?", "options": ["a", "b"]}, "Which one?"),
    ("a_plugin's tool", {"city": "Ulm", "days": 3, "nested": {"x": 1}}, "city: Ulm, days: 3"),
)


@pytest.mark.parametrize(("tool", "arguments", "shown"), CALLS)
def test_a_call_is_shown_with_what_it_is_about(tool: str, arguments: dict[str, object], shown: str) -> None:
    assert call_subject(arguments) == shown, tool


def test_every_tool_has_a_row_in_the_table() -> None:
    assert {tool.spec.name for tool in TOOLS} <= {name for name, _, _ in CALLS}
