"""The options of bubblewrap."""

from dataclasses import replace
from pathlib import Path

from agent.backends.sandbox.bubblewrap import starter_main
from agent.backends.sandbox.bubblewrap.argv import BwrapFds, bwrap_options
from agent.backends.sandbox.types import GeneratedFile, Link, ResourceLimits, SandboxPolicy

PLAIN = SandboxPolicy(
    writable=(Path("/home/me/project"),),
    home=Path("/home/me"),
    readable=(Path("/usr"), Path("/etc/ssl/certs")),
    links=(Link(path=Path("/bin"), target="usr/bin"),),
    generated_files=(GeneratedFile(path=Path("/etc/passwd"), content=b"user\n"),),
    toolchains=(Path("/home/me/.pyenv"),),
    pinned=(Path("/home/me/project/.git"),),
    protected=(Path("/home/me/project/.git/hooks"), Path("/home/me/project/.git/config")),
    limits=ResourceLimits(scratch_bytes=1000),
    uid=1001,
    gid=1002,
)
SOURCE = Path(starter_main.__file__)
FDS = BwrapFds(seccomp=10, status=11, gate=12, generated_files=(13,))


def options(policy: SandboxPolicy = PLAIN) -> list[str]:
    return bwrap_options(policy, FDS)


def test_all_options() -> None:
    assert options() == [
        *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--uid", "1001", "--gid", "1002", "--hostname", "windlass", "--as-pid-1"),
        *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--ro-bind", "/usr", "/usr", "--ro-bind", "/etc/ssl/certs", "/etc/ssl/certs"),
        *("--symlink", "usr/bin", "/bin", "--perms", "0444", "--file", "13", "/etc/passwd"),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--perms", "1777", "--size", "1000", "--tmpfs", "/dev/shm"),
        *("--perms", "0700", "--size", "1000", "--tmpfs", "/home/me"),
        *("--ro-bind", "/home/me/.pyenv", "/home/me/.pyenv"),
        *("--bind", "/home/me/project", "/home/me/project"),
        *("--bind", "/home/me/project/.git", "/home/me/project/.git"),
        *("--ro-bind", "/home/me/project/.git/config", "/home/me/project/.git/config"),
        *("--ro-bind", "/home/me/project/.git/hooks", "/home/me/project/.git/hooks"),
        *("--perms", "1777", "--size", "1000", "--tmpfs", "/tmp"),
        *("--ro-bind", str(SOURCE), "/.windlass/starter.py"),
        *("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"),
        *("--seccomp", "10", "--json-status-fd", "11", "--block-fd", "12"),
    ]


def test_no_variable_is_among_the_options() -> None:
    assert "--setenv" not in options(replace(PLAIN, environment={"A": "secret"}, proxy_env={"B": "secret"}))


def test_a_proxy_adds_its_socket() -> None:
    words = options(replace(PLAIN, proxy_socket=Path("/run/user/1/p.sock"), relay=("relay",)))
    at = words.index("/run/user/1/p.sock")
    assert words[at - 1 : at + 2] == ["--bind", "/run/user/1/p.sock", "/.windlass/net/proxy.sock"]
    assert "--unshare-net" in words


def test_the_folder_of_the_proxy_is_mounted_before_its_socket_exists() -> None:
    words = options(replace(PLAIN, proxy_dir=Path("/data/net")))
    at = words.index("/data/net")
    assert words[at - 1 : at + 2] == ["--ro-bind", "/data/net", "/.windlass/net"]


def test_outputs_can_be_read_even_in_a_hidden_folder() -> None:
    hidden, outputs = Path("/home/me/data"), Path("/home/me/data/s1/outputs")
    words = options(replace(PLAIN, writable=(Path("/home/me"),), hidden_folders=(hidden,), outputs=(outputs,)))
    at = words.index(str(outputs))
    assert words[at - 1 : at + 2] == ["--ro-bind", str(outputs), str(outputs)]
    assert words.index("--tmpfs", words.index(str(Path("/home/me")))) < at
    assert words[at:].index(str(hidden)) > 0
    assert words[at + words[at:].index(str(hidden)) - 1] == "--remount-ro"


def test_a_workspace_is_mounted_after_the_empty_folders_around_it() -> None:
    for workspace in ("/tmp/work", "/home/me/work", "/home/me"):
        words = options(replace(PLAIN, writable=(Path(workspace),), toolchains=(), pinned=(), protected=()))
        covers = [place for place in ("/tmp", "/home/me") if Path(workspace).is_relative_to(place)]
        bound = words.index("--bind")
        assert words[bound : bound + 3] == ["--bind", workspace, workspace]
        assert all(words.index(place) < bound for place in covers)


def test_hidden_paths_are_masked_after_their_folder_is_mounted() -> None:
    words = options(
        replace(
            PLAIN,
            writable=(Path("/home/me"),),
            hidden_folders=(Path("/home/me/.ssh"),),
            hidden_files=(Path("/home/me/.netrc"),),
        )
    )
    at = words.index("/home/me/.ssh")
    assert words[at - 5 : at + 1] == ["--perms", "0500", "--size", "4096", "--tmpfs", "/home/me/.ssh"]
    at = words.index("/home/me/.ssh", at + 1)
    assert words[at - 1] == "--remount-ro"
    at = words.index("/home/me/.netrc")
    assert words[at - 2 : at + 1] == ["--ro-bind", "/dev/null", "/home/me/.netrc"]
    assert words.index("--bind") < at
