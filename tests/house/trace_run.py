"""Runs `agent …` and reports which of its own modules and functions it used: `trace_run.py REPORT ROOT ARGUMENTS…`."""

import inspect
import json
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType

LAYERS = ("patterns", "tooling", "agent", "cli")
_MODULE_BODY = "<module>"
_COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


class CallTrace:
    """Collects every code object that is called, in any thread."""

    def __init__(self, root: Path) -> None:
        self._prefixes = tuple(f"{root / layer}{os.sep}" for layer in LAYERS)
        self._called: dict[int, CodeType] = {}

    def start(self) -> None:
        threading.setprofile(self._on_call)
        sys.setprofile(self._on_call)

    def _on_call(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self._called[id(frame.f_code)] = frame.f_code

    def report(self) -> dict[str, list[str]]:
        """Return names of loaded modules and, as `file:name`, of the functions and of all the code that was called."""
        sys.setprofile(None)
        own = [code for code in list(self._called.values()) if code.co_filename.startswith(self._prefixes)]
        code = [code_object for code_object in own if code_object.co_name != _MODULE_BODY]
        return {
            "modules": sorted(name for name in list(sys.modules) if name.partition(".")[0] in LAYERS),
            "functions": sorted({_name(code_object) for code_object in code if _is_function(code_object)}),
            "code": sorted({_name(code_object) for code_object in code}),
        }


def _is_function(code: CodeType) -> bool:
    """Whether this is a function, method or lambda: neither a class body nor a comprehension."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and code.co_name not in _COMPREHENSIONS


def _name(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_qualname}"


def main() -> None:
    """Run the program and write the report just before its process ends."""
    report, root = Path(sys.argv[1]), Path(sys.argv[2])
    sys.argv = ["agent", *sys.argv[3:]]
    trace = CallTrace(root)
    end_process = os._exit

    def write_and_exit(code: int) -> None:
        report.write_text(json.dumps(trace.report()))
        end_process(code)

    # The program ends with os._exit, so neither atexit nor a finally block would see the end.
    os._exit = write_and_exit  # type: ignore[assignment]
    trace.start()
    from cli.main import main as run_program

    run_program()


if __name__ == "__main__":
    main()
