"""Replies that describe a change instead of making it, and those that only look like it."""

import pytest

from agent.execution.step.described_change import asks_for_change, describes_change, may_have_changed

FIX = "fix the bug in area.py"
CODE = "```python\nimport math\n\ndef area(r):\n    return math.pi * r * r\n```"


@pytest.mark.parametrize(
    "request_text",
    [
        FIX,
        "Fix the failing test.",
        "please rename get_user to fetch_user everywhere",
        "Could you add a --verbose flag to cli.py?",
        "can you change the port to 9090",
        "The tests in tests/ fail. Make them pass: fix app.py",
        "I want you to remove the unused imports",
        "Read config.ini, then change the port to 9090",
        "write a script hello.py that prints hello",
        "Convert data.csv to JSON",
        "make the function in utils.py faster",
        "Refactor parse() into two functions and run the tests",
        "create a file notes.txt with three lines",
    ],
)
def test_requests_for_a_change(request_text: str) -> None:
    assert asks_for_change(request_text)


@pytest.mark.parametrize(
    "request_text",
    [
        "how do I fix the import error in area.py?",
        "what does parse() do?",
        "Why does the test fail? I want to fix it later.",
        "explain how to rename a branch",
        "review my change in app.py",
        "Can you explain how to add a route?",
        "suggest how to refactor this module",
        "write me a regex that matches a date",
        "show me the code that would fix it",
        "Write a regex that matches an email address",
        "make a plan to replace the database; do not change anything",
        "plan how to add tests",
        "Is it safe to delete build/?",
        "Which function should I rename?",
        "give me a corrected version of: he go to school",
        "count the lines of README.md",
        "convert 5 miles to kilometres",
        "hello",
        "Behebe den Fehler in area.py",
        "¿Cómo arreglo esto?",
        "修复 area.py 中的错误",
        "Look at app.py and tell me what to change. Fix nothing.",
    ],
)
def test_requests_that_want_words(request_text: str) -> None:
    assert not asks_for_change(request_text)


@pytest.mark.parametrize(
    "reply",
    [
        "The error occurs because `math` is missing. You need to import `math` at the top of the file.",
        f"Here is the corrected code:\n\n{CODE}",
        f"Here's the updated version of `area.py`:\n{CODE}\nNow it works.",
        "I would rename the variable `r` to `radius` and import math.",
        "To fix this, change line 3 to `return math.pi * r * r`.",
        "To fix this issue, you can add `import math`.",
        "The fix is to import math before it is used.",
        "You should add the following line at the top of `area.py`:\n```python\nimport math\n```",
        "1. Open area.py\n2. Replace `pi` with `math.pi`\n3. Save the file",
        "You'll need to update the function.",
        "`pi` should be replaced by `math.pi`.",
        "To add a docstring to the function, follow these steps:\n\n1. Locate it.\n2. Add it below the name.",
        "Open the `area.py` file in your preferred text editor and look for `pi`.",
    ],
)
def test_a_reply_that_describes_the_change(reply: str) -> None:
    assert describes_change(FIX, reply)
    assert not describes_change("how do I fix the bug in area.py?", reply)
    assert not describes_change("show me how area.py could be fixed", reply)


@pytest.mark.parametrize(
    "reply",
    [
        "I added `import math` to area.py. You can run the tests with pytest.",
        "Done: area.py imports math now. You should add a test.",
        "Fixed. `area(2)` returns 12.566.",
        f"I've fixed the function. Here is the corrected code:\n{CODE}",
        "The import has been added.",
        "I could not write area.py: permission denied. You need to change its mode.",
        "The edit was denied. You can change line 3 yourself.",
        "area.py does not exist. You should create it first.",
        "No change is needed: the function is correct.",
        "The bug is already fixed in this version.",
        "Two functions are called area. You can rename either; which one do you mean?",
        "All 12 tests pass.",
        "Du musst `math` importieren.",
        "需要导入 math。",
        "",
    ],
)
def test_other_replies_get_no_nudge(reply: str) -> None:
    assert not describes_change(FIX, reply)


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("run_command", {"command": "cat area.py; ls -la | head"}, False),
        ("run_command", {"command": "sed -i s/a/b/ area.py"}, True),
        ("run_command", {"command": "python3 fix.py"}, True),
        ("run_python", {"code": "print('Hello, World!')"}, False),
        ("run_python", {"code": "open('area.py', 'w').write('x')"}, True),
        ("write_file", {"path": "area.py"}, True),
    ],
)
def test_a_call_that_only_looked_has_changed_nothing(tool: str, arguments: dict[str, object], expected: bool) -> None:
    assert may_have_changed(tool, arguments) is expected
