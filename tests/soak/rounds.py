"""One round of each kind of fault: what was seen is in the log, nothing is repeated or lost, and the run completes."""

import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.cli.terminal_user import User
from tests.crash.test_kills import Killer, check_end, read_log, repeated_steps
from tests.crash.twenty_steps import NAMES, Workload, led_plan, task_plan, tool_plan
from tests.provider.faults import FAULT_NAMES
from tests.provider.replies import Text
from tests.provider.threaded import ThreadedProvider
from tests.soak.power_cut import replay

Round = Callable[[Path, random.Random, Path], None]
SESSION = "s"
LIMIT_S = 120
MAX_TRIES = 12
STREAM = ("--output-format", "stream-json")
# ENOSPC, EIO, EDQUOT, EROFS, and writes that are only half done.
FAULTS = (28, 5, 122, 30, 0)
# A stream that never ends is limited by settings, and its time belongs to the tests of the client.
PROVIDER_FAULTS = tuple(name for name in FAULT_NAMES if "silence" not in name and "stops" not in name)


def build_shim(folder: Path) -> Path:
    """Compile the shim."""
    shim = folder / "disk_shim.so"
    source = Path(__file__).with_name("disk_shim.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", shim, source, "-ldl", "-lpthread"], check=True)
    return shim


def kill_round(folder: Path, rng: random.Random, shim: Path) -> None:
    """Kill a run at random moments until it completes."""
    work, killer = _workload(folder, rng), Killer(rng.randrange(1 << 30))
    for number in range(MAX_TRIES):
        emitted = killer.run(work.user, _words(work), is_killed=number < MAX_TRIES - 1)
        _check_emitted(work.user, emitted)
        if _is_finished(work.user):
            break
    check_end(work, read_log(work.user, SESSION), str(folder))


def power_round(folder: Path, rng: random.Random, shim: Path) -> None:
    """Cut the power at random moments: only synced writes survive. What was emitted must be among them."""
    work = _workload(folder, rng)
    data, before = work.user.data, folder / "before"
    killer = Killer(rng.randrange(1 << 30))
    for number in range(MAX_TRIES):
        data.mkdir(mode=0o700, exist_ok=True)
        shutil.rmtree(before, ignore_errors=True)
        shutil.copytree(data, before, ignore=_odd_files)
        journal = folder / f"journal-{number}"
        work.user.environ.update(LD_PRELOAD=str(shim), SHIM_ROOT=str(data), SHIM_JOURNAL=str(journal))
        is_last = number == MAX_TRIES - 1
        emitted = killer.run(work.user, _words(work), is_killed=not is_last)
        work.user.environ.clear()
        work.user.environ.update(_planning(work))
        if not is_last:
            data.rename(folder / "gone")
            replay(before, journal, data, rng)
            shutil.rmtree(folder / "gone")
        _check_emitted(work.user, emitted)
        if _is_finished(work.user):
            break
    check_end(work, read_log(work.user, SESSION), str(folder))


def disk_round(folder: Path, rng: random.Random, shim: Path) -> None:
    """Let operations on the data folder fail; afterwards the run can be resumed."""
    work = _workload(folder, rng, models=False)
    for _ in range(3):
        work.user.data.mkdir(mode=0o700, exist_ok=True)
        every, seed = rng.randrange(5, 300), rng.randrange(9999)
        environ = {"SHIM_ERRNO": str(rng.choice(FAULTS)), "SHIM_EVERY": str(every), "SHIM_SEED": str(seed)}
        ended = _run(work.user, *_words(work), LD_PRELOAD=str(shim), SHIM_ROOT=str(work.user.data), **environ)
        _check_output(ended, f"{folder} {environ}")
        if _is_finished(work.user):
            break
    ended = _run(work.user, *_words(work)) if not _is_finished(work.user) else ended
    _check_output(ended, str(folder))
    log = read_log(work.user, SESSION)
    assert (Counter(work.lines), repeated_steps(log)) == (Counter(NAMES), []), f"{folder}: {ended.stderr[-500:]!r}"


def damage_round(folder: Path, rng: random.Random, shim: Path) -> None:
    """Damage files of a session; every command then ends in time with a message, never with a traceback."""
    work = _workload(folder, rng)
    Killer(rng.randrange(1 << 30)).run(work.user, _words(work), is_killed=True)
    files = sorted(path for path in work.user.data.rglob("*") if path.is_file() and not path.is_symlink())
    for path in rng.sample(files, min(len(files), rng.randrange(1, 4))):
        _damage(path, rng)
    for words in (("sessions", "list"), ("runs", "list"), ("sessions", "show", SESSION), ("resume", SESSION)):
        _check_output(_run(work.user, *words), f"{folder}: {words}")
    _check_output(_run(work.user, "sessions", "fsck", SESSION), f"{folder}: fsck")


def provider_round(folder: Path, rng: random.Random, shim: Path) -> None:
    """Answer with faults on either wire; the run ends with an answer or with the exit code of the fault."""
    user = User(home=folder / "home")
    user.home.mkdir()
    model = rng.choice(("openai/test-model", "anthropic/test-model"))
    with ThreadedProvider(otherwise=Text("It is done.")) as provider:
        for _ in range(rng.randrange(1, 4)):
            provider.fault(rng.choice(PROVIDER_FAULTS), times=rng.randrange(1, 3), retry_after="0")
        flags = ("--model", model, "--set", f"api_base={provider.base_url}", "--set", "api_key=k", "--scratch")
        # Keep-alives without an end are a reply until its time limit.
        flags = (*flags, "--set", "reply_timeout_s=15")
        ended = _run(user, "run", "go", *flags, "--planning", rng.choice(("auto", "always")), *STREAM)
    _check_output(ended, str(folder))
    assert b'"type": "result"' in ended.stdout.splitlines()[-1], folder


ROUNDS: dict[str, Round] = {
    "kill": kill_round,
    "power": power_round,
    "disk": disk_round,
    "damage": damage_round,
    "provider": provider_round,
}


def _workload(folder: Path, rng: random.Random, *, models: bool = True) -> Workload:
    user = User(home=folder / "home")
    user.home.mkdir()
    return rng.choice((tool_plan, task_plan, led_plan) if models else (tool_plan,))(user)


def _planning(work: Workload) -> dict[str, str]:
    """Return the setting that the plan of a lead needs."""
    return {"AGENT_PLANNING": "auto"} if "script" in " ".join(work.argv) and _is_led(work) else {}


def _is_led(work: Workload) -> bool:
    return '"purpose": "planner"' not in (work.user.home / "script.jsonl").read_text()


def _words(work: Workload) -> tuple[str, ...]:
    """Return the first command line, or that of a resume once the request is in the log."""
    has_request = any(event.get("role") == "user" for event in read_log(work.user, SESSION))
    return ("resume", SESSION) if has_request else (*work.argv, "--session", SESSION)


def _is_finished(user: User) -> bool:
    log = read_log(user, SESSION)
    return bool(log) and log[-1]["type"] == "result" and log[-1]["exit_code"] == 0


def _check_emitted(user: User, emitted: list[dict[str, object]]) -> None:
    seen = {event["seq"] for event in emitted if not event.get("delta") and event["type"] != "tool.output"}
    lost = seen - {event["seq"] for event in read_log(user, SESSION)}
    assert not lost, f"emitted events are not in the log: {sorted(map(str, lost))}"


def _run(user: User, *words: str, **environ: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        user.command(*words),
        env=user.environment(**environ),
        cwd=user.home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )


def _check_output(ended: "subprocess.CompletedProcess[bytes]", place: str) -> None:
    text = ended.stderr + ended.stdout
    assert b"Traceback" not in ended.stderr and b"internal error" not in text, f"{place}: {text[-1500:]!r}"
    assert ended.returncode >= 0, f"{place}: died with {ended.returncode}"


def _odd_files(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if not (Path(folder) / name).is_dir() and not (Path(folder) / name).is_file()]


def _damage(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    match rng.choice(("cut", "flip", "empty", "folder", "noise", "link", "mode")):
        case "cut":
            path.write_bytes(data[: rng.randrange(len(data) + 1)])
        case "flip" if data:
            for _ in range(rng.randrange(1, 20)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data)
        case "folder":
            path.unlink()
            path.mkdir()
        case "noise":
            path.write_bytes(data + rng.randbytes(rng.randrange(1, 5000)))
        case "link":
            path.unlink()
            path.symlink_to("/nonexistent")
        case "mode":
            path.chmod(rng.choice((0o000, 0o444, 0o777)))
        case _:
            path.write_bytes(b"")
