"""The filter of system calls, written as the classic BPF program that the kernel reads."""

import errno
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from agent.backends.syscalls import MACHINES, Machine

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_X32_BIT = 0x40000000
_FEW = 4

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET.
NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
# TIOCSTI types into the terminal, TIOCLINUX pastes into a console.
TERMINAL_TRICKS = (0x5412, 0x541C)
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE = 0


class Instruction(NamedTuple):
    """One step of the program: where to go on when a comparison holds, and when not."""

    code: int
    if_true: int
    if_false: int
    value: int


class MachineUnknown(ValueError):
    """There is no table of system calls for this processor."""


def box_filter(machine: str) -> bytes:
    """Return the filter for commands inside namespaces: local sockets and loopback stay usable."""
    return _assemble(_program(_known(machine), has_sockets=True))


def bare_filter(machine: str) -> bytes:
    """Return the filter for commands that share the machine's namespaces: no sockets, no owners, no shared memory."""
    return _assemble(_program(_known(machine), has_sockets=False))


def _known(machine: str) -> Machine:
    try:
        return MACHINES[machine]
    except KeyError:
        raise MachineUnknown(f"no table of system calls for {machine}") from None


def _program(machine: Machine, *, has_sockets: bool) -> Iterator[Instruction]:
    yield _load(_ARCH)
    yield Instruction(_EQUAL, 1, 0, machine.audit_arch)
    yield _stop(KILL)
    yield _load(_NUMBER)
    if machine.has_x32:
        yield Instruction(_AT_LEAST, 0, 1, _X32_BIT)
        yield _fail(errno.EPERM)
    yield from _search(sorted(_rules(machine, has_sockets=has_sockets).items()))


def _rules(machine: Machine, *, has_sockets: bool) -> dict[int, list[Instruction]]:
    """Return what is done about each call that is not simply allowed."""
    denied = [*machine.denied.values(), *(() if has_sockets else machine.unboxed.values())]
    terminal = [step for request in TERMINAL_TRICKS for step in _when(request, [_fail(errno.EPERM)])]
    return {
        **{number: [_fail(errno.ENOSYS)] for number in machine.absent.values()},
        **{number: [_fail(errno.EPERM)] for number in denied},
        machine.clone: [_load(_ARGUMENTS), *_fail_on_bits(NEW_NAMESPACES), _stop(ALLOW)],
        machine.ioctl: [_load(_ARGUMENTS + 8), *terminal, _stop(ALLOW)],
        machine.socket: [*_sockets()] if has_sockets else [_fail(errno.EACCES)],
    }


def _search(rules: Sequence[tuple[int, list[Instruction]]]) -> Iterator[Instruction]:
    """Halve the list until few are left: the kernel walks the program once for every call there is."""
    if len(rules) <= _FEW:
        for number, steps in rules:
            yield from _when(number, steps)
        yield _stop(ALLOW)
        return
    middle = len(rules) // 2
    lower = list(_search(rules[:middle]))
    yield Instruction(_AT_LEAST, len(lower), 0, rules[middle][0])
    yield from lower
    yield from _search(rules[middle:])


def _sockets() -> Iterator[Instruction]:
    yield _load(_ARGUMENTS)
    for family in (AF_UNIX, AF_INET, AF_INET6):
        yield from _when(family, [_stop(ALLOW)])
    # Looking up interfaces and addresses is part of every resolver; the rest of netlink is for administrators.
    yield from _when(AF_NETLINK, [_load(_ARGUMENTS + 16), *_when(_NETLINK_ROUTE, [_stop(ALLOW)])])
    yield _fail(errno.EAFNOSUPPORT)


def _when(value: int, steps: list[Instruction]) -> Iterator[Instruction]:
    yield Instruction(_EQUAL, 0, len(steps), value)
    yield from steps


def _fail_on_bits(bits: int) -> Iterator[Instruction]:
    yield Instruction(_ANY_BIT, 0, 1, bits)
    yield _fail(errno.EPERM)


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, offset)


def _stop(action: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, action)


def _fail(number: int) -> Instruction:
    return _stop(_FAIL | number)


def _assemble(program: Iterable[Instruction]) -> bytes:
    return b"".join(struct.pack("<HBBI", *step) for step in program)
