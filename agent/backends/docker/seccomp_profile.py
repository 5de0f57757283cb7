"""The seccomp profile of containers in Docker's format, generated from the tables of the sandbox filters."""

import errno
import json
from collections.abc import Iterator, Mapping, Sequence

from agent.backends.sandbox.seccomp import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    CREATING_FLAGS,
    LEASE,
    NEW_NAMESPACES,
    SET_USER_ID,
    TERMINAL_INJECTION_IOCTLS,
    Architecture,
    find_architecture,
)

_LOW_BITS = 0xFFFFFFFF
_DOCKER_NAMES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}


def docker_profile(machine: str) -> str:
    """Return the profile as JSON; the kernel rejects every other architecture of the machine, such as x32."""
    rules = [*_rules(find_architecture(machine))]
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "architectures": [_DOCKER_NAMES[machine]], "syscalls": rules})


def _rules(machine: Architecture) -> Iterator[Mapping[str, object]]:
    yield _refuse(sorted(machine.denied), errno.EPERM)
    yield _refuse(sorted(machine.absent), errno.ENOSYS)
    for bit in _bits(NEW_NAMESPACES):
        yield _refuse(["clone"], errno.EPERM, _has_bit(0, bit))
    for request in TERMINAL_INJECTION_IOCTLS:
        yield _refuse(["ioctl"], errno.EPERM, _equals(1, request))
    yield _refuse(["fcntl"], errno.EPERM, _equals(1, LEASE))
    # Only for the caller's own limits, as in the sandbox.
    yield _refuse(["prlimit64"], errno.EPERM, _compare(0, "SCMP_CMP_NE", 0))
    for name, (_, position) in machine.modes.items():
        yield _refuse([name], errno.EPERM, _has_bit(position, SET_USER_ID))
    for name, (_, position) in machine.creating.items():
        for flag in _bits(CREATING_FLAGS):
            yield _refuse([name], errno.EPERM, _has_bit(position - 1, flag), _has_bit(position, SET_USER_ID))
    yield from _sockets()


def _sockets() -> Iterator[Mapping[str, object]]:
    """Refuse all socket families except local, internet and routing, one by one, because the default allows."""
    allowed = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
    for family in sorted(set(range(AF_NETLINK)) - {*allowed}):
        yield _refuse(["socket"], errno.EAFNOSUPPORT, _equals(0, family))
    yield _refuse(["socket"], errno.EAFNOSUPPORT, _compare(0, "SCMP_CMP_GT", AF_NETLINK))
    yield _refuse(["socket"], errno.EAFNOSUPPORT, _equals(0, AF_NETLINK), _compare(2, "SCMP_CMP_NE", 0))


def _refuse(names: Sequence[str], error: int, *conditions: Mapping[str, object]) -> Mapping[str, object]:
    return {"names": list(names), "action": "SCMP_ACT_ERRNO", "errnoRet": error, "args": list(conditions)}


def _compare(index: int, operation: str, value: int, other: int = 0) -> Mapping[str, object]:
    return {"index": index, "op": operation, "value": value, "valueTwo": other}


def _equals(index: int, value: int) -> Mapping[str, object]:
    # The kernel ignores the upper half of such an argument, so the comparison must ignore it, too.
    return _compare(index, "SCMP_CMP_MASKED_EQ", _LOW_BITS, value)


def _has_bit(index: int, bit: int) -> Mapping[str, object]:
    return _compare(index, "SCMP_CMP_MASKED_EQ", bit, bit)


def _bits(value: int) -> list[int]:
    return [1 << shift for shift in range(value.bit_length()) if value >> shift & 1]
