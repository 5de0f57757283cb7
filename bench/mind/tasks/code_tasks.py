"""Tasks on source code: fix, rename, add, delete, test."""

import ast
import re
import sys

from bench.mind.tasks.task import Task, Work

_STATS = '''\
def mean(numbers):
    """Return the arithmetic mean."""
    return sum(numbers) / (len(numbers) - 1)


def largest(numbers):
    return max(numbers)
'''

_SHOP = """\
def calc(prices):
    total = 0
    for price in prices:
        total += price
    return total
"""
_MAIN = """\
from shop import calc

print("total:", calc([3, 4, 5]))
"""

_TEXT_TOOLS = """\
def shout(text):
    return text.upper() + "!"
"""

_BILLING = """\
RATE = 0.2


def net_total(prices):
    return sum(prices)


def old_total(prices):
    result = 0
    for price in prices:
        result = result + price
    return result


def gross_total(prices):
    return round(net_total(prices) * (1 + RATE), 2)
"""

_TEMPERATURE = """\
def to_fahrenheit(celsius):
    return celsius * 9 / 5 + 32
"""


def _is_mean_fixed(work: Work) -> bool:
    return work.python("import stats; print(stats.mean([2, 4, 9]), stats.largest([1, 7]))").split() == ["5.0", "7"]


def _is_renamed(work: Work) -> bool:
    sources = work.read("shop.py") + work.read("main.py")
    return not re.search(r"\bcalc\b", sources) and work.run(sys.executable, "main.py") == "total: 12\n"


def _is_slugify_added(work: Work) -> bool:
    code = "import text_tools as t; print(t.slugify('Hello Big World'), t.slugify('one'), t.shout('a'))"
    return work.python(code).split() == ["hello-big-world", "one", "A!"]


def _is_dead_code_deleted(work: Work) -> bool:
    code = "import billing as b; print(hasattr(b, 'old_total'), b.net_total([1, 2]), b.gross_total([10, 5]), b.RATE)"
    return work.python(code).split() == ["False", "3", "18.0", "0.2"]


def _is_extracted(work: Work) -> bool:
    """Accept a function `area` with two parameters that both other functions call."""
    code = "import shapes as s; print(s.area(2, 3), s.price(2, 3), s.weight(2, 3))"
    if work.python(code).split() != ["6", "60", "18"]:
        return False
    functions = {
        node.name: node for node in ast.parse(work.read("shapes.py")).body if isinstance(node, ast.FunctionDef)
    }
    return all("area(" in ast.unparse(functions[name]) for name in ("price", "weight"))


def _is_test_written(work: Work) -> bool:
    """Accept tests that pass, and that fail once the tested function is broken."""
    if work.read("temperature.py") != _TEMPERATURE or not work.passes_tests("test_temperature.py"):
        return False
    (work.folder / "temperature.py").write_text("def to_fahrenheit(celsius):\n    return celsius * 2 + 31\n")
    return not work.passes_tests("test_temperature.py")


CODE_TASKS = (
    Task(
        name="fix-bug",
        request="mean() in stats.py returns a wrong result: mean([2, 4, 9]) should be 5.0. Fix it.",
        files={"stats.py": _STATS},
        check=_is_mean_fixed,
    ),
    Task(
        name="rename",
        request="Rename the function calc to total_price in shop.py and everywhere it is used.",
        files={"shop.py": _SHOP, "main.py": _MAIN},
        check=_is_renamed,
    ),
    Task(
        name="add-function",
        request=(
            "Add a function slugify(text) to text_tools.py. It returns the text in lower case with every space "
            "replaced by a hyphen. Keep the existing function."
        ),
        files={"text_tools.py": _TEXT_TOOLS},
        check=_is_slugify_added,
    ),
    Task(
        name="extract-function",
        request=(
            "In shapes.py, price and weight both compute width * height. Extract that into a function "
            "area(width, height) in the same file and call it from both."
        ),
        files={
            "shapes.py": (
                "def price(width, height):\n    return width * height * 10\n\n\n"
                "def weight(width, height):\n    return width * height * 3\n"
            )
        },
        check=_is_extracted,
    ),
    Task(
        name="delete-dead-code",
        request="Delete the unused function old_total from billing.py. Leave everything else as it is.",
        files={"billing.py": _BILLING},
        check=_is_dead_code_deleted,
    ),
    Task(
        name="write-test",
        request=(
            "Write test_temperature.py with a pytest test for to_fahrenheit in temperature.py: 0 is 32 and 100 is 212."
        ),
        files={"temperature.py": _TEMPERATURE},
        check=_is_test_written,
    ),
)
