"""Measure sessions with tools: requests, shared prefixes, bytes against a bare loop, knowledge of a follow-up."""

import json
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from bench.measure import BenchResult
from bench.mind.wire import BareLoop, changed_shares
from bench.program import AGENT, BenchError, Home
from bench.replies import offers_tools, plan
from tests.provider.replies import Calls, Reply, Text
from tests.provider.server import ReceivedRequest, Responder
from tests.provider.threaded import ThreadedProvider

KILOBYTE = 1000
CONFIG = "[server]\nhost = 127.0.0.1\nport = 8080\n"
NOTES = "".join(f"{number}: a line of notes like any other\n" for number in range(1, 41))


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One request of the user, and the replies of the model until it is answered."""

    words: str
    replies: tuple[Reply, ...]


def _command(line: str) -> Reply:
    return Calls(("run_command", {"command": line}))


# Ten replies: a plain agent loop needs ten requests for them.
SESSION = (
    Turn(
        words="What is in this folder, and how long are the notes?",
        replies=(
            _command("ls"),
            Calls(("read_file", {"path": "notes.txt"})),
            _command("wc -l notes.txt"),
            Calls(("search_text", {"pattern": "port"})),
            Text("There are notes of 40 lines, and a configuration with a port."),
        ),
    ),
    Turn(
        words="Copy the first three lines to top.txt.",
        replies=(_command("head -n 3 notes.txt > top.txt"), _command("cat top.txt"), Text("top.txt has three lines.")),
    ),
    Turn(words="How many lines has it?", replies=(_command("wc -l top.txt"), Text("It has 3 lines."))),
)
ONE_COMMAND = Turn(words="List the files.", replies=(_command("ls"), Text("config.ini and notes.txt.")))
QUESTION = Turn(words="Why do windmills turn?", replies=(Text("Because the wind pushes their sails."),))


def requests_per_task() -> list[BenchResult]:
    """Count the requests for one command and for a question without tools."""
    return [
        _count("requests for a one-command task: call, answer", 2, ONE_COMMAND),
        _count("requests for a question that needs no tool", 1, QUESTION),
    ]


def long_session() -> list[BenchResult]:
    """Measure prefixes and bytes over a session, and the size of the first request with tools."""
    with _workspace() as desk:
        for turn in SESSION:
            desk.play(turn)
        requests = list(desk.provider.requests)
    changed = changed_shares([request.raw for request in requests])
    first, sent = next(filter(offers_tools, requests)), sum(request.size for request in requests)
    bare = _bare_bytes(first, requests)
    tools = first.body["tools"]
    assert isinstance(tools, list)
    size = f"{first.size} bytes of JSON, {len(tools)} tools"
    return [
        BenchResult(
            what="share of a request's prompt that is not a prefix of the next one",
            measured=100 * max(changed),
            limit=5,
            unit="%",
            detail=f"worst of {len(changed)} pairs, mean {100 * mean(changed):.1f} %",
        ),
        BenchResult(
            what="bytes sent in that session against a bare chat loop",
            measured=sent / bare,
            limit=1.1,
            unit="×",
            detail=f"{sent} bytes in {len(requests)} requests against {bare} in {_replies()}",
        ),
        BenchResult(
            what="first request with all tools", measured=first.size / KILOBYTE, limit=9, unit="kB", detail=size
        ),
    ]


def follow_up() -> list[BenchResult]:
    """Count how often a file is read again for a follow-up by a model that edits once it knows the text."""
    with _workspace() as desk:
        read = Calls(("read_file", {"path": "config.ini"}))
        desk.play(Turn(words="Read the port in config.ini.", replies=(read, Text("The port is 8080."))))
        reads = desk.play_editor("Change it to 9090.")
        if "port = 9090" not in (desk.folder / "config.ini").read_text():
            raise BenchError("the port was not changed")
    what = "further reads of config.ini for `change it to 9090`"
    detail = "the model reads it unless the earlier result is in the request"
    return [BenchResult(what=what, measured=reads, limit=0, unit="", detail=detail)]


class Desk:
    """A folder with two files, a session in it, and a model that follows a script."""

    def __init__(self, folder: Path, home: Home, provider: ThreadedProvider) -> None:
        self.folder, self.provider = folder, provider
        self._home = home
        self._is_new = True

    def play(self, turn: Turn) -> None:
        """Run a request; a planner gets a plan of one step, or the answer if there is no work."""
        left = deque(turn.replies)

        def respond(request: ReceivedRequest) -> Reply:
            if offers_tools(request) or not left:
                return left.popleft() if left else turn.replies[-1]
            return plan(1) if len(left) > 1 else Text(json.dumps({"answer": left.popleft().text}))

        self._run(turn.words, respond)
        if left:
            raise BenchError(f"{len(left)} replies to {turn.words!r} were not asked for")

    def play_editor(self, words: str) -> int:
        """Run a request to change the port; return how often the file was read."""
        reads, has_tried = 0, False

        def respond(request: ReceivedRequest) -> Reply:
            nonlocal reads, has_tried
            if not offers_tools(request):
                return plan(1)
            if "port = 9090" in (self.folder / "config.ini").read_text():
                return Text("Done.")
            if _knows_port(request) and not has_tried:
                has_tried = True
                edit = {"path": "config.ini", "old_text": "port = 8080", "new_text": "port = 9090"}
                return Calls(("edit_file", edit))
            # Unknown, or the edit was refused: a model would read the file.
            reads, has_tried = reads + 1, False
            return Calls(("read_file", {"path": "config.ini"}))

        self._run(words, respond)
        return reads

    def _run(self, words: str, respond: Responder) -> None:
        self.provider.reply(*[respond] * 20)
        flags = ("-C", str(self.folder), "--model", "openai/bench-model", "--approval-mode", "yolo")
        self._home.run([AGENT, "run", *flags, *([] if self._is_new else ["-c"]), words])
        self._is_new = False
        self.provider.drop_script()


@contextmanager
def _workspace() -> Iterator[Desk]:
    with tempfile.TemporaryDirectory() as name, ThreadedProvider() as provider:
        folder = Path(name, "project")
        folder.mkdir()
        (folder / "config.ini").write_text(CONFIG)
        (folder / "notes.txt").write_text(NOTES)
        yield Desk(folder, Home(Path(name), provider), provider)


def _count(what: str, limit: int, turn: Turn) -> BenchResult:
    with _workspace() as desk:
        desk.play(turn)
        requests = desk.provider.requests
    detail = f"{sum(map(offers_tools, requests))} of them with tools"
    return BenchResult(what=what, measured=len(requests), limit=limit, unit="", detail=detail)


def _bare_bytes(first: ReceivedRequest, requests: Sequence[ReceivedRequest]) -> int:
    """Return the bytes that a bare loop sends for the same exchange, with the results of the tools."""
    results = deque(_results(requests))
    loop, number = BareLoop(first.body), 0
    for at, turn in enumerate(SESSION):
        if at:
            loop.ask(turn.words)
        for reply in turn.replies:
            number += 1
            loop.send()
            loop.receive(reply, number, [results.popleft() for _ in reply.calls])
    return loop.bytes_sent


def _results(requests: Sequence[ReceivedRequest]) -> list[str]:
    """Return every tool result once, as it was first sent."""
    seen: dict[str, str] = {}
    for request in requests:
        messages = request.body["messages"]
        assert isinstance(messages, list)
        for message in messages:
            if message["role"] == "tool":
                seen.setdefault(message["tool_call_id"], message["content"])
    return list(seen.values())


def _knows_port(request: ReceivedRequest) -> bool:
    messages = request.body["messages"]
    assert isinstance(messages, list)
    return any(message["role"] == "tool" and "port = 8080" in str(message["content"]) for message in messages)


def _replies() -> int:
    return sum(len(turn.replies) for turn in SESSION)
