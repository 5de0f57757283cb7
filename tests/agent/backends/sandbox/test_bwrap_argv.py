"""The bubblewrap command line."""

from dataclasses import replace
from pathlib import Path

from agent.backends.sandbox.bubblewrap.argv import BwrapFds, bwrap_argv
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
FDS = BwrapFds(seccomp=10, status=11, gate=12, generated_files=(13,))


def argv(policy: SandboxPolicy = PLAIN, *words: str) -> list[str]:
    return bwrap_argv(
        policy,
        words or ("bash", "-c", "make"),
        Path("/home/me/project/src"),
        program=Path("/usr/bin/bwrap"),
        fds=FDS,
    )


def test_the_complete_command_line() -> None:
    assert argv() == [
        *("/usr/bin/bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--uid", "1001", "--gid", "1002", "--hostname", "windlass"),
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
        *("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/home/me/project/src"),
        *("--seccomp", "10", "--json-status-fd", "11", "--block-fd", "12", "--", "bash", "-c", "make"),
    ]


def test_only_loader_variables_of_the_environment_are_on_the_command_line() -> None:
    words = bwrap_argv(
        PLAIN,
        ("true",),
        Path("/"),
        program=Path("/usr/bin/bwrap"),
        fds=FDS,
        setenv={"LD_LIBRARY_PATH": "/ws/lib"},
    )
    at = words.index("--setenv")
    assert words[at : at + 4] == ["--setenv", "LD_LIBRARY_PATH", "/ws/lib", "--seccomp"]
    assert "--setenv" not in argv(replace(PLAIN, environment={"A": "secret"}, proxy_env={"B": "secret"}))


def test_a_proxy_adds_its_socket_and_a_command_prefix() -> None:
    words = argv(replace(PLAIN, proxy_socket=Path("/run/user/1/p.sock"), command_prefix=("relay", "--")), "curl", "x")
    at = words.index("/run/user/1/p.sock")
    assert words[at - 1 : at + 2] == ["--bind", "/run/user/1/p.sock", "/run/windlass/proxy.sock"]
    assert words[-5:] == ["--", "relay", "--", "curl", "x"]
    assert "--unshare-net" in words


def test_a_workspace_is_mounted_after_the_empty_folders_around_it() -> None:
    for workspace in ("/tmp/work", "/home/me/work", "/home/me"):
        words = argv(replace(PLAIN, writable=(Path(workspace),), toolchains=(), pinned=(), protected=()))
        covers = [place for place in ("/tmp", "/home/me") if Path(workspace).is_relative_to(place)]
        bound = words.index("--bind")
        assert words[bound : bound + 3] == ["--bind", workspace, workspace]
        assert all(words.index(place) < bound for place in covers)


def test_hidden_paths_are_masked_after_their_folder_is_mounted() -> None:
    words = argv(
        replace(
            PLAIN,
            writable=(Path("/home/me"),),
            hidden_folders=(Path("/home/me/.ssh"),),
            hidden_files=(Path("/home/me/.netrc"),),
        )
    )
    at = words.index("/home/me/.ssh")
    assert words[at - 5 : at + 3] == [
        *("--perms", "0500", "--size", "4096", "--tmpfs", "/home/me/.ssh", "--remount-ro", "/home/me/.ssh"),
    ]
    at = words.index("/home/me/.netrc")
    assert words[at - 2 : at + 1] == ["--ro-bind", "/dev/null", "/home/me/.netrc"]
    assert words.index("--bind") < at
