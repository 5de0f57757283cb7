"""Tool calls in the form that hook scripts for Claude Code expect: tool names, argument names, absolute paths."""

import shlex
from collections.abc import Callable, Iterator, Mapping

from agent.hooks.hook import GuardedCall, HookFailed
from agent.vocabulary.plan import PLAN_TOOL
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import JsonObject
from tooling.patch.file_patch import FilePatch
from tooling.tools.apply_patch import parse_patch
from tooling.tools.run_command import PYTHON_TOOL, python_code, python_command


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeCall:
    """One call in the terms of Claude Code; `path` is its file, `is_delete` means that it deletes that file."""

    tool_name: str
    tool_input: JsonObject
    path: str = ""
    is_delete: bool = False

    def response(self, output: str) -> JsonObject:
        """Return the result of the call in the form that scripts expect."""
        if self.tool_name == "Bash":
            return {"stdout": output, "stderr": "", "interrupted": False, "isImage": False, "success": True}
        about = {"filePath": self.path} if self.path else {}
        return {**about, "success": True, "content": output}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Simple:
    """A tool with a counterpart; `fields` maps the arguments whose names differ."""

    name: str
    fields: Mapping[str, str]


_SIMPLE: Mapping[str, _Simple] = {
    "run_command": _Simple(name="Bash", fields={"background": "run_in_background", "timeout_s": "timeout"}),
    "read_file": _Simple(name="Read", fields={"path": "file_path"}),
    "write_file": _Simple(name="Write", fields={"path": "file_path"}),
    "edit_file": _Simple(name="Edit", fields={"path": "file_path", "old_text": "old_string", "new_text": "new_string"}),
    "list_directory": _Simple(name="LS", fields={}),
    "find_files": _Simple(name="Glob", fields={}),
    "search_text": _Simple(name="Grep", fields={"ignore_case": "-i", "context": "-C"}),
    "search_web": _Simple(name="WebSearch", fields={}),
    "fetch_page": _Simple(name="WebFetch", fields={"query": "prompt"}),
    "manage_tasks": _Simple(name="TodoWrite", fields={"tasks": "todos"}),
    "ask_user": _Simple(name="AskUserQuestion", fields={}),
    PLAN_TOOL: _Simple(name="Task", fields={}),
}
# Arguments that are paths, by their name in scripts.
_PATHS = ("file_path", "path")
_MILLISECONDS = "timeout"
NO_CODE = "changed the code of run_python to a command that is not `python3 -c CODE`"


def claude_calls(call: GuardedCall) -> tuple[ClaudeCall, ...]:
    """Return the equivalent calls: one, or one per file or replacement."""
    special = _SPECIAL.get(call.tool)
    return tuple(special(call)) if special else (_simple_call(call),)


def own_arguments(call: GuardedCall, changed: JsonObject) -> JsonObject:
    """Translate arguments changed by a script back to those of the tool. Raises HookFailed."""
    if call.tool == PYTHON_TOOL:
        return {**call.arguments, "code": _code(changed)}
    known = _SIMPLE.get(call.tool)
    names = {theirs: ours for ours, theirs in known.fields.items()} if known else {}
    arguments: dict[str, object] = {}
    for theirs, value in changed.items():
        ours = names.get(theirs, theirs)
        if theirs == _MILLISECONDS and ours != theirs and isinstance(value, (int, float)):
            value = value / 1000
        if ours in call.arguments:
            arguments[ours] = value
    return {**{name: value for name, value in call.arguments.items() if name not in arguments}, **arguments}


def own_call(name: str) -> tuple[str, Mapping[str, str]]:
    """Return our tool for the name in a script, and our argument names by those of the script."""
    for tool, known in _SIMPLE.items():
        if name == known.name:
            return tool, {theirs: ours for ours, theirs in known.fields.items()}
    return name, {}


def _simple_call(call: GuardedCall) -> ClaudeCall:
    known = _SIMPLE.get(call.tool) or _Simple(name=call.tool, fields={})
    given = {known.fields.get(name, name): value for name, value in call.arguments.items() if value is not None}
    if known.name == "Bash":
        given.setdefault("description", "")
        if isinstance(limit := given.get(_MILLISECONDS), (int, float)):
            given[_MILLISECONDS] = int(limit * 1000)
    for name in _PATHS:
        if isinstance(path := given.get(name), str) and call.tool in _SIMPLE:
            given[name] = str(call.cwd / path)
    return ClaudeCall(tool_name=known.name, tool_input=given, path=str(given.get("file_path", "")))


def _reads(call: GuardedCall) -> Iterator[ClaudeCall]:
    first = _simple_call(call)
    yield ClaudeCall(tool_name=first.tool_name, tool_input=_without(first.tool_input, "more"), path=first.path)
    for name in call.paths[1:]:
        path = str(call.cwd / name)
        yield ClaudeCall(tool_name="Read", tool_input={"file_path": path}, path=path)


def _edits(call: GuardedCall) -> Iterator[ClaudeCall]:
    whole = _simple_call(call)
    edits = call.arguments.get("edits")
    if not isinstance(edits, (list, tuple)) or not edits:
        yield ClaudeCall(tool_name="Edit", tool_input=_without(whole.tool_input, "edits"), path=whole.path)
        return
    for edit in edits:
        yield _edit(whole.path, str(edit["old_text"]), str(edit["new_text"]))


def _deletion(call: GuardedCall) -> Iterator[ClaudeCall]:
    yield from _delete(str(call.cwd / str(call.arguments["path"])))


def _python(call: GuardedCall) -> Iterator[ClaudeCall]:
    yield ClaudeCall(
        tool_name="Bash", tool_input={"command": python_command(str(call.arguments["code"])), "description": ""}
    )


def _code(changed: JsonObject) -> str:
    code = python_code(str(changed.get("command", "")))
    if code is None:
        raise HookFailed(NO_CODE)
    return code


def _patches(call: GuardedCall) -> Iterator[ClaudeCall]:
    for patch in parse_patch(str(call.arguments["patch"])):
        yield from _patch_calls(patch, call)


def _patch_calls(patch: FilePatch, call: GuardedCall) -> Iterator[ClaudeCall]:
    path = str(call.cwd / patch.path)
    if patch.kind == "delete" or patch.move_to:
        yield from _delete(path)
    if patch.kind == "add":
        yield _write(path, patch.content)
    target = str(call.cwd / patch.move_to) if patch.move_to else path
    for hunk in patch.hunks if patch.kind == "update" else ():
        old = "\n".join(text for sign, text in hunk.lines if sign in (" ", "-"))
        new = "\n".join(text for sign, text in hunk.lines if sign in (" ", "+"))
        yield _edit(target, old, new)
    if patch.move_to and not patch.hunks:
        yield _write(target, "")


def _delete(path: str) -> Iterator[ClaudeCall]:
    """Yield a deletion twice: as a command that deletes a file, and as a write for scripts that protect files."""
    yield ClaudeCall(
        tool_name="Bash", tool_input={"command": f"rm -- {shlex.quote(path)}", "description": ""}, is_delete=True
    )
    yield ClaudeCall(tool_name="Write", tool_input={"file_path": path, "content": ""}, path=path, is_delete=True)


def _write(path: str, content: str) -> ClaudeCall:
    return ClaudeCall(tool_name="Write", tool_input={"file_path": path, "content": content}, path=path)


def _edit(path: str, old: str, new: str) -> ClaudeCall:
    given = {"file_path": path, "old_string": old, "new_string": new, "replace_all": False}
    return ClaudeCall(tool_name="Edit", tool_input=given, path=path)


def _without(given: JsonObject, name: str) -> JsonObject:
    return {key: value for key, value in given.items() if key != name}


_SPECIAL: Mapping[str, Callable[[GuardedCall], Iterator[ClaudeCall]]] = {
    "read_file": _reads,
    "edit_file": _edits,
    "delete_file": _deletion,
    PYTHON_TOOL: _python,
    "apply_patch": _patches,
}
