"""The system call filters, run by a small BPF interpreter."""

import errno
import struct
from collections.abc import Callable

import pytest

from agent.backends.sandbox.seccomp import (
    ALLOW,
    ARCHITECTURES,
    KILL,
    UnknownArchitecture,
    bubblewrap_filter,
    landlock_filter,
)

DENIED = 0x00050000 | errno.EPERM
ABSENT = 0x00050000 | errno.ENOSYS
NO_FAMILY = 0x00050000 | errno.EAFNOSUPPORT
NEWUSER, SIGCHLD = 0x10000000, 17
NAMES = tuple(ARCHITECTURES)


def run_filter(program: bytes, machine: str, number: int, *arguments: int, arch: int | None = None) -> int:
    data = struct.pack(
        "<iIQ6Q", number, arch or ARCHITECTURES[machine].audit_arch, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6]
    )
    steps = list(struct.iter_unpack("<HBBI", program))
    at, value = 0, 0
    while True:
        code, if_true, if_false, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("<I", data, operand)
            case 0x15:
                at += if_true if value == operand else if_false
            case 0x35:
                at += if_true if value >= operand else if_false
            case 0x45:
                at += if_true if value & operand else if_false
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(code)


@pytest.mark.parametrize("machine", NAMES)
def test_the_listed_calls_are_denied_and_all_others_are_allowed(machine: str) -> None:
    table, program = ARCHITECTURES[machine], bubblewrap_filter(machine)
    expected = {
        **dict.fromkeys(range(480), ALLOW),
        **dict.fromkeys(table.denied.values(), DENIED),
        **dict.fromkeys(table.absent.values(), ABSENT),
        table.socket: NO_FAMILY,
    }
    assert {number: run_filter(program, machine, number) for number in range(480)} == expected


@pytest.mark.parametrize("machine", NAMES)
def test_processes_and_threads_can_be_created_but_not_namespaces(machine: str) -> None:
    program, clone = bubblewrap_filter(machine), ARCHITECTURES[machine].clone
    assert run_filter(program, machine, clone, SIGCHLD) == ALLOW
    assert run_filter(program, machine, clone, 0x3D0F00) == ALLOW
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, NEWUSER, 0x20000000, 0x40000000):
        assert run_filter(program, machine, clone, flag | SIGCHLD) == DENIED


@pytest.mark.parametrize("machine", NAMES)
def test_only_common_socket_families_can_be_used(machine: str) -> None:
    program, socket = bubblewrap_filter(machine), ARCHITECTURES[machine].socket
    assert {family: run_filter(program, machine, socket, family, 1) for family in (1, 2, 10)} == dict.fromkeys(
        (1, 2, 10), ALLOW
    )
    assert run_filter(program, machine, socket, 16, 3, 0) == ALLOW
    assert run_filter(program, machine, socket, 16, 3, 9) == NO_FAMILY
    for family in (0, 3, 17, 38, 40, 44):
        assert run_filter(program, machine, socket, family, 1) == NO_FAMILY


@pytest.mark.parametrize("machine", NAMES)
def test_terminal_input_cannot_be_injected(machine: str) -> None:
    program, ioctl = bubblewrap_filter(machine), ARCHITECTURES[machine].ioctl
    assert run_filter(program, machine, ioctl, 0, 0x5401) == ALLOW
    assert run_filter(program, machine, ioctl, 0, 0x5412) == DENIED
    assert run_filter(program, machine, ioctl, 0, 0x541C) == DENIED
    # The kernel ignores the upper half.
    assert run_filter(program, machine, ioctl, 0, (1 << 32) | 0x5412) == DENIED


@pytest.mark.parametrize("machine", NAMES)
def test_a_command_cannot_make_others_wait_for_a_file(machine: str) -> None:
    fcntl, lease, lock = ARCHITECTURES[machine].fcntl, 1024, 6
    for program in (bubblewrap_filter(machine), landlock_filter(machine)):
        assert [run_filter(program, machine, fcntl, 3, kind) for kind in (lock, lease)] == [ALLOW, DENIED]


def test_other_system_call_interfaces_are_denied() -> None:
    program = bubblewrap_filter("x86_64")
    assert run_filter(program, "x86_64", 0, arch=0x40000003) == KILL
    assert run_filter(program, "x86_64", 0x40000000) == DENIED
    assert run_filter(program, "x86_64", -1) == DENIED


@pytest.mark.parametrize("machine", NAMES)
def test_without_namespaces_sockets_and_ownership_changes_are_denied(machine: str) -> None:
    table, program = ARCHITECTURES[machine], landlock_filter(machine)
    assert {run_filter(program, machine, table.socket, family) for family in (1, 2, 10, 16)} == {
        0x00050000 | errno.EACCES
    }
    assert {run_filter(program, machine, number) for number in table.denied_without_namespaces.values()} == {DENIED}


@pytest.mark.parametrize("machine", NAMES)
def test_without_namespaces_a_process_changes_only_itself(machine: str) -> None:
    table, program = ARCHITECTURES[machine], landlock_filter(machine)
    for number in (*table.by_process.values(), table.prlimit):
        assert [run_filter(program, machine, number, pid) for pid in (0, 1, 4711)] == [ALLOW, DENIED, DENIED]
    process, group, user = 0, 1, 2
    for kind in (process, group, user):
        expected = ALLOW if kind == process else DENIED
        assert run_filter(program, machine, table.setpriority, kind, 0, 5) == expected
        assert run_filter(program, machine, table.setpriority, kind, 4711, 5) == DENIED
        # The kinds of priorities for input and output begin with 1.
        assert run_filter(program, machine, table.ioprio_set, kind + 1, 0, 5) == expected
        assert run_filter(program, machine, table.ioprio_set, kind + 1, 4711, 5) == DENIED


@pytest.mark.parametrize("machine", NAMES)
@pytest.mark.parametrize("build", [bubblewrap_filter, landlock_filter])
def test_no_file_runs_as_its_owner_for_others(machine: str, build: Callable[[str], bytes]) -> None:
    table, program = ARCHITECTURES[machine], build(machine)
    for number, at in table.modes.values():
        modes = (0o755, 0o2755, 0o4755, 0o6711)
        assert [run_filter(program, machine, number, *[7] * at, mode) for mode in modes] == [ALLOW] * 2 + [DENIED] * 2
    for number, at in table.creating.values():
        before = [7] * (at - 1)
        for flags, expected in ((0o2, ALLOW), (0o102, DENIED), (0o20200002, DENIED)):
            assert run_filter(program, machine, number, *before, flags, 0o4755) == expected
            assert run_filter(program, machine, number, *before, flags, 0o644) == ALLOW


def test_an_unknown_architecture_is_an_error() -> None:
    with pytest.raises(UnknownArchitecture):
        bubblewrap_filter("vax")
