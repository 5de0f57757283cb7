"""The seccomp filters, as classic BPF programs."""

import errno
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tooling.contract.fast_dataclass import dataclass

# Calls added since 2018 have the same number on every architecture.
_COMMON = """
    open_tree=428 move_mount=429 fsopen=430 fsconfig=431 fsmount=432 fspick=433 pidfd_getfd=438 process_madvise=440
    mount_setattr=442 quotactl_fd=443 open_tree_attr=467
"""
# `openat2` has the mode of a new file in memory, where a filter cannot see it.
_COMMON_ABSENT = "io_uring_setup=425 io_uring_enter=426 io_uring_register=427 clone3=435 openat2=437"

_X86_64 = """
    syslog=103 ptrace=101 uselib=134 ustat=136 sysfs=139 vhangup=153 modify_ldt=154 pivot_root=155 _sysctl=156
    chroot=161 acct=163 settimeofday=164 mount=165 umount2=166 swapon=167 swapoff=168 reboot=169 sethostname=170
    setdomainname=171 iopl=172 ioperm=173 create_module=174 init_module=175 delete_module=176 quotactl=179
    nfsservctl=180 lookup_dcookie=212 clock_settime=227 kexec_load=246 add_key=248 request_key=249 keyctl=250
    unshare=272 move_pages=279 perf_event_open=298 fanotify_init=300 name_to_handle_at=303 open_by_handle_at=304
    clock_adjtime=305 setns=308 process_vm_readv=310 process_vm_writev=311 kcmp=312 finit_module=313
    kexec_file_load=320 bpf=321 userfaultfd=323
"""
_X86_64_NO_NAMESPACES = """
    chown=92 fchown=93 lchown=94 fchownat=260 setxattr=188 lsetxattr=189 fsetxattr=190 removexattr=197
    lremovexattr=198 fremovexattr=199 setxattrat=463 removexattrat=466 file_setattr=469 shmget=29 shmat=30 semget=64
    msgget=68
    mq_open=240 mq_unlink=241 shmctl=31 semop=65 semctl=66 msgsnd=69 msgrcv=70 msgctl=71 semtimedop=220
    migrate_pages=256 inotify_add_watch=254
"""
# The argument with the mode of a file; for calls that may create one, only with the flags in the argument before it.
_X86_64_MODES = "creat=85:1 chmod=90:1 fchmod=91:1 mknod=133:1 mknodat=259:2 fchmodat=268:2 fchmodat2=452:2"
_X86_64_CREATING = "open=2:2 openat=257:3"
# These change a process by its number, the first argument; without a namespace only 0, the caller, is allowed.
_X86_64_BY_PROCESS = "sched_setparam=142 sched_setscheduler=144 sched_setaffinity=203 sched_setattr=314"
_AARCH64_BY_PROCESS = "sched_setparam=118 sched_setscheduler=119 sched_setaffinity=122 sched_setattr=274"
_AARCH64 = """
    lookup_dcookie=18 umount2=39 mount=40 pivot_root=41 nfsservctl=42 chroot=51 vhangup=58 quotactl=60 acct=89
    unshare=97 kexec_load=104 init_module=105 delete_module=106 clock_settime=112 syslog=116 ptrace=117 reboot=142
    sethostname=161 setdomainname=162 settimeofday=170 add_key=217 request_key=218 keyctl=219 swapon=224 swapoff=225
    move_pages=239 perf_event_open=241 fanotify_init=262 name_to_handle_at=264 open_by_handle_at=265
    clock_adjtime=266 setns=268 process_vm_readv=270 process_vm_writev=271 kcmp=272 finit_module=273 bpf=280
    userfaultfd=282 kexec_file_load=294
"""
_AARCH64_NO_NAMESPACES = """
    setxattr=5 lsetxattr=6 fsetxattr=7 removexattr=14 lremovexattr=15 fremovexattr=16 fchownat=54 fchown=55
    setxattrat=463 removexattrat=466 file_setattr=469 mq_open=180 mq_unlink=181 msgget=186 semget=190 shmget=194
    shmat=196 msgctl=187
    msgrcv=188 msgsnd=189 semctl=191 semtimedop=192 semop=193 shmctl=195 migrate_pages=238
    inotify_add_watch=27
"""
_AARCH64_MODES = "mknodat=33:2 fchmod=52:1 fchmodat=53:2 fchmodat2=452:2"
_AARCH64_CREATING = "openat=56:3"


def _positions(text: str) -> dict[str, tuple[int, int]]:
    """Return the number of a call and the position of its argument, by the name of the call."""
    words = (word.replace(":", "=").split("=") for word in text.split())
    return {name: (int(number), int(at)) for name, number, at in words}


def _table(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (word.split("=") for word in text.split())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A processor architecture and its system call numbers.

    `denied` calls fail with EPERM. `absent` ones fail with ENOSYS, so that libraries fall back to older calls.
    `denied_without_namespaces` are denied too where commands share the namespaces of the machine, and there
    `by_process`, `setpriority` and `ioprio_set` change the caller only. `modes` and `creating` have the number of a
    call and the position of the mode of a file: no command makes one that others run as this user.
    """

    audit_arch: int
    clone: int
    ioctl: int
    fcntl: int
    prlimit: int
    setpriority: int
    ioprio_set: int
    socket: int
    has_x32: bool
    denied: Mapping[str, int]
    absent: Mapping[str, int]
    denied_without_namespaces: Mapping[str, int]
    by_process: Mapping[str, int]
    modes: Mapping[str, tuple[int, int]]
    creating: Mapping[str, tuple[int, int]]


ARCHITECTURES = {
    "x86_64": Architecture(
        audit_arch=0xC000003E,
        clone=56,
        ioctl=16,
        fcntl=72,
        prlimit=302,
        setpriority=141,
        ioprio_set=251,
        socket=41,
        has_x32=True,
        denied=_table(_X86_64 + _COMMON),
        absent=_table(_COMMON_ABSENT),
        denied_without_namespaces=_table(_X86_64_NO_NAMESPACES),
        by_process=_table(_X86_64_BY_PROCESS),
        modes=_positions(_X86_64_MODES),
        creating=_positions(_X86_64_CREATING),
    ),
    "aarch64": Architecture(
        audit_arch=0xC00000B7,
        clone=220,
        ioctl=29,
        fcntl=25,
        prlimit=261,
        setpriority=140,
        ioprio_set=30,
        socket=198,
        has_x32=False,
        denied=_table(_AARCH64 + _COMMON),
        absent=_table(_COMMON_ABSENT),
        denied_without_namespaces=_table(_AARCH64_NO_NAMESPACES),
        by_process=_table(_AARCH64_BY_PROCESS),
        modes=_positions(_AARCH64_MODES),
        creating=_positions(_AARCH64_CREATING),
    ),
}


_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_X32_BIT = 0x40000000
_LINEAR_SEARCH_MAX = 4

# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET.
NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
# TIOCSTI types into the terminal, TIOCLINUX pastes into a console.
TERMINAL_INJECTION_IOCTLS = (0x5412, 0x541C)
# F_SETLEASE: any other process that opens the file, such as a system program, waits up to 45 seconds.
LEASE = 1024
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE = 0
SET_USER_ID = 0o4000
# O_CREAT and O_TMPFILE.
CREATING_FLAGS = 0o100 | 0o20000000
_PRIORITY_OF_PROCESS, _IO_PRIORITY_OF_PROCESS = 0, 1


class Instruction(NamedTuple):
    """One BPF instruction, with the relative jumps of a comparison."""

    code: int
    if_true: int
    if_false: int
    value: int


class UnknownArchitecture(ValueError):
    """There is no system call table for this architecture."""


def bubblewrap_filter(machine: str) -> bytes:
    """Return the filter for commands in namespaces, which may use local sockets and loopback."""
    return _assemble(_program(find_architecture(machine), has_sockets=True))


def landlock_filter(machine: str) -> bytes:
    """Return the filter for commands without namespaces: no sockets, ownership changes or shared memory."""
    return _assemble(_program(find_architecture(machine), has_sockets=False))


def find_architecture(machine: str) -> Architecture:
    """Return the system calls of a machine. Raises UnknownArchitecture."""
    try:
        return ARCHITECTURES[machine]
    except KeyError:
        raise UnknownArchitecture(f"no system call table for {machine}") from None


def _program(machine: Architecture, *, has_sockets: bool) -> Iterator[Instruction]:
    yield _load(_ARCH)
    yield Instruction(_EQUAL, 1, 0, machine.audit_arch)
    yield _return(KILL)
    yield _load(_NUMBER)
    if machine.has_x32:
        yield Instruction(_AT_LEAST, 0, 1, _X32_BIT)
        yield _fail(errno.EPERM)
    yield from _search(sorted(_rules(machine, has_sockets=has_sockets).items()))


def _rules(machine: Architecture, *, has_sockets: bool) -> dict[int, list[Instruction]]:
    """Return the instructions for each call that is not always allowed."""
    denied = [*machine.denied.values(), *(() if has_sockets else machine.denied_without_namespaces.values())]
    terminal = [step for request in TERMINAL_INJECTION_IOCTLS for step in _if_equal(request, [_fail(errno.EPERM)])]
    own_process = [_load(_ARGUMENTS), *_if_equal(0, [_return(ALLOW)]), _fail(errno.EPERM)]
    of_others = (
        {} if has_sockets else {**_priorities(machine), **dict.fromkeys(machine.by_process.values(), own_process)}
    )
    return {
        **{number: [_fail(errno.ENOSYS)] for number in machine.absent.values()},
        **{number: [_fail(errno.EPERM)] for number in denied},
        machine.clone: [_load(_ARGUMENTS), *_fail_on_bits(NEW_NAMESPACES), _return(ALLOW)],
        machine.ioctl: [_load(_ARGUMENTS + 8), *terminal, _return(ALLOW)],
        machine.fcntl: [_load(_ARGUMENTS + 8), *_if_equal(LEASE, [_fail(errno.EPERM)]), _return(ALLOW)],
        # Only for the caller's own limits: otherwise a command could kill the first process of the sandbox.
        machine.prlimit: own_process,
        **_file_modes(machine),
        **of_others,
        machine.socket: [*_sockets()] if has_sockets else [_fail(errno.EACCES)],
    }


def _file_modes(machine: Architecture) -> dict[int, list[Instruction]]:
    """Return the rules for calls that set the mode of a file: setuid is denied."""

    def refuse(position: int) -> list[Instruction]:
        return [_load(_ARGUMENTS + 8 * position), *_fail_on_bits(SET_USER_ID), _return(ALLOW)]

    found = {number: refuse(position) for number, position in machine.modes.values()}
    for number, position in machine.creating.values():
        # Otherwise the mode is not an argument and may be arbitrary.
        has_mode = Instruction(_ANY_BIT, 1, 0, CREATING_FLAGS)
        found[number] = [_load(_ARGUMENTS + 8 * position - 8), has_mode, _return(ALLOW), *refuse(position)]
    return found


def _priorities(machine: Architecture) -> dict[int, list[Instruction]]:
    """Return the rules for calls that name processes, groups or users: only the caller, with number 0, is allowed."""
    caller = [_load(_ARGUMENTS + 8), *_if_equal(0, [_return(ALLOW)]), _fail(errno.EPERM)]
    kinds = {machine.setpriority: _PRIORITY_OF_PROCESS, machine.ioprio_set: _IO_PRIORITY_OF_PROCESS}
    return {number: [_load(_ARGUMENTS), *_if_equal(kind, caller), _fail(errno.EPERM)] for number, kind in kinds.items()}


def _search(rules: Sequence[tuple[int, list[Instruction]]]) -> Iterator[Instruction]:
    """Yield a binary search, because the kernel runs the program for every system call."""
    if len(rules) <= _LINEAR_SEARCH_MAX:
        for number, steps in rules:
            yield from _if_equal(number, steps)
        yield _return(ALLOW)
        return
    middle = len(rules) // 2
    lower = list(_search(rules[:middle]))
    yield Instruction(_AT_LEAST, len(lower), 0, rules[middle][0])
    yield from lower
    yield from _search(rules[middle:])


def _sockets() -> Iterator[Instruction]:
    yield _load(_ARGUMENTS)
    for family in (AF_UNIX, AF_INET, AF_INET6):
        yield from _if_equal(family, [_return(ALLOW)])
    # Resolvers look up interfaces and addresses; the rest of netlink is for administration.
    yield from _if_equal(AF_NETLINK, [_load(_ARGUMENTS + 16), *_if_equal(_NETLINK_ROUTE, [_return(ALLOW)])])
    yield _fail(errno.EAFNOSUPPORT)


def _if_equal(value: int, steps: list[Instruction]) -> Iterator[Instruction]:
    yield Instruction(_EQUAL, 0, len(steps), value)
    yield from steps


def _fail_on_bits(bits: int) -> Iterator[Instruction]:
    yield Instruction(_ANY_BIT, 0, 1, bits)
    yield _fail(errno.EPERM)


def _load(offset: int) -> Instruction:
    return Instruction(_LOAD, 0, 0, offset)


def _return(action: int) -> Instruction:
    return Instruction(_RETURN, 0, 0, action)


def _fail(number: int) -> Instruction:
    return _return(_FAIL | number)


def _assemble(program: Iterable[Instruction]) -> bytes:
    return b"".join(struct.pack("<HBBI", *step) for step in program)
