"""fetch_page from the shell, in a run, and with approval at a terminal."""

import json

import pytest

from tests.cli.pty_terminal import PtyTerminal
from tests.cli.terminal_user import ProgramResult, User, one_step, step_call, step_reply
from tests.tooling.web.site import Site, http_response, redirect
from tests.tooling.web.threaded_site import serve_in_thread

pytestmark = pytest.mark.slow

LOCAL = ("--set", "web_allow_loopback=true")
HTML = http_response(
    "<title>Tides</title><h1>How tides work</h1><p>The moon pulls the water, and the sun pulls a little.</p>"
)
CACHEABLE = http_response("cached words", "Cache-Control: max-age=600", kind="text/plain")


def run(user: User, site: Site, *flags: str, path: str = "/") -> ProgramResult:
    replies = one_step(step_call("s1", "fetch_page", url=site.url(path)), step_reply("s1", "Read it."))
    return user.agent("run", "--model", user.script(*replies), *LOCAL, "--output-format", "stream-json", *flags, "read")


def tool_result(events: list[dict[str, object]]) -> dict[str, object]:
    return next(event for event in events if event["type"] == "tool.completed")


def test_an_address_typed_by_the_user_needs_no_rule(user: User) -> None:
    with serve_in_thread({"/": HTML}) as site:
        ended = user.agent("tools", "call", "fetch_page", f"url={site.url()}", *LOCAL)
        denied = user.agent(
            "tools", "call", "fetch_page", f"url={site.url()}", *LOCAL, "--deny", "fetch_page 127.0.0.1"
        )
        closed = user.agent("tools", "call", "fetch_page", f"url={site.url()}")
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert ended.stdout.startswith(f'<web origin="{site.url()}">\nTitle: ')
    assert "The moon pulls the water" in ended.stdout
    assert denied.exit_code == 57
    assert (closed.exit_code, "not a public address (loopback)" in closed.stderr) == (1, True)
    assert len(site.requests) == 1


def test_a_redirect_to_another_host_needs_a_rule(user: User) -> None:
    with serve_in_thread({}) as site:
        site.pages["/"] = redirect(site.url("/there", host="localhost"))
        ended = user.agent("tools", "call", "fetch_page", f"url={site.url()}", *LOCAL)
    assert (ended.exit_code, site.paths) == (57, ["/"])
    assert "--allow 'fetch_page localhost' would allow it" in ended.stderr


def test_a_run_without_a_terminal_refuses_and_names_the_rule(user: User) -> None:
    with serve_in_thread({"/": HTML}) as site:
        refused = run(user, site)
        allowed = run(user, site, "--allow", "fetch_page 127.0.0.1")
    assert refused.exit_code == 57
    assert "--allow 'fetch_page 127.0.0.1' would allow it" in str(tool_result(refused.events)["output"])
    assert allowed.exit_code == 0, allowed.stderr
    network = [event for event in allowed.events if event["type"] == "network"]
    assert [(event["host"], event["allowed"]) for event in network] == [("127.0.0.1", True)]


def test_pages_are_cached_between_runs_unless_disabled(user: User) -> None:
    with serve_in_thread({"/": CACHEABLE}) as site:
        outputs = [
            str(tool_result(run(user, site, "--allow", "fetch_page", *flags).events)["output"])
            for flags in ((), (), ("--no-cache",), ("--ephemeral",), ("--set", "web_cache=false"), ())
        ]
    assert ["from the cache" in output for output in outputs] == [False, True, False, False, False, True]
    assert len(site.requests) == 4
    (file,) = (user.data / "web").iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_the_user_is_asked_once_per_host_and_can_save_the_answer(user: User) -> None:
    with serve_in_thread({"*": http_response("words", kind="text/plain")}) as site:
        replies = one_step(
            step_call("s1", "fetch_page", url=site.url("/a?x=1")),
            step_call("s1", "fetch_page", url=site.url("/b")),
            step_reply("s1", "Both read."),
        )
        words = ("run", "read", "--model", user.script(*replies), *LOCAL, "--session", "s")
        terminal = PtyTerminal(user, *words)
        shown = terminal.wait_for("[y] once  [r] 'fetch_page 127.0.0.1' in this run")
        assert f"fetch_page {site.url('/a?x=1')}" in shown
        assert "it sends this address to 127.0.0.1" in shown
        terminal.send_line("a")
        code, rest = terminal.wait_exit()
    assert (code, site.paths) == (0, ["/a?x=1", "/b"]), rest
    assert "fetch_page 127.0.0.1" in user.agent("rules", "list").stdout
    log = (user.data / "sessions" / "s" / "events.jsonl").read_text()
    asked = [json.loads(line) for line in log.splitlines() if '"type": "approval.requested"' in line]
    assert [(event["rule"], event["tool"]) for event in asked] == [("fetch_page 127.0.0.1", "fetch_page")]
