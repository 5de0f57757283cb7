"""The system calls that no command in a box needs, by number, for the two machines we know."""

from collections.abc import Mapping

from tooling.contract.fast_dataclass import dataclass

# The same numbers on every machine: calls added since 2018 share one table.
_COMMON = """
    open_tree=428 move_mount=429 fsopen=430 fsconfig=431 fsmount=432 fspick=433 pidfd_getfd=438 process_madvise=440
    mount_setattr=442 quotactl_fd=443 open_tree_attr=467
"""
_COMMON_ABSENT = "io_uring_setup=425 io_uring_enter=426 io_uring_register=427 clone3=435"

_X86_64 = """
    syslog=103 ptrace=101 uselib=134 ustat=136 sysfs=139 vhangup=153 modify_ldt=154 pivot_root=155 _sysctl=156
    chroot=161 acct=163 settimeofday=164 mount=165 umount2=166 swapon=167 swapoff=168 reboot=169 sethostname=170
    setdomainname=171 iopl=172 ioperm=173 create_module=174 init_module=175 delete_module=176 quotactl=179
    nfsservctl=180 lookup_dcookie=212 clock_settime=227 kexec_load=246 add_key=248 request_key=249 keyctl=250
    unshare=272 move_pages=279 perf_event_open=298 fanotify_init=300 name_to_handle_at=303 open_by_handle_at=304
    clock_adjtime=305 setns=308 process_vm_readv=310 process_vm_writev=311 kcmp=312 finit_module=313
    kexec_file_load=320 bpf=321 userfaultfd=323
"""
_X86_64_UNBOXED = """
    chown=92 fchown=93 lchown=94 fchownat=260 setxattr=188 lsetxattr=189 fsetxattr=190 removexattr=197
    lremovexattr=198 fremovexattr=199 setxattrat=463 removexattrat=466 shmget=29 shmat=30 semget=64 msgget=68
    mq_open=240 mq_unlink=241
"""
_AARCH64 = """
    lookup_dcookie=18 umount2=39 mount=40 pivot_root=41 nfsservctl=42 chroot=51 vhangup=58 quotactl=60 acct=89
    unshare=97 kexec_load=104 init_module=105 delete_module=106 clock_settime=112 syslog=116 ptrace=117 reboot=142
    sethostname=161 setdomainname=162 settimeofday=170 add_key=217 request_key=218 keyctl=219 swapon=224 swapoff=225
    move_pages=239 perf_event_open=241 fanotify_init=262 name_to_handle_at=264 open_by_handle_at=265
    clock_adjtime=266 setns=268 process_vm_readv=270 process_vm_writev=271 kcmp=272 finit_module=273 bpf=280
    userfaultfd=282 kexec_file_load=294
"""
_AARCH64_UNBOXED = """
    setxattr=5 lsetxattr=6 fsetxattr=7 removexattr=14 lremovexattr=15 fremovexattr=16 fchownat=54 fchown=55
    setxattrat=463 removexattrat=466 mq_open=180 mq_unlink=181 msgget=186 semget=190 shmget=194 shmat=196
"""


def _table(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (word.split("=") for word in text.split())}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One kind of processor: its number in filters and its calls.

    `denied` get EPERM; `absent` get ENOSYS, because libraries then use their older ways; `unboxed` are denied as well
    where no namespaces stand between a command and the machine.
    """

    audit_arch: int
    clone: int
    ioctl: int
    socket: int
    has_x32: bool
    denied: Mapping[str, int]
    absent: Mapping[str, int]
    unboxed: Mapping[str, int]


MACHINES = {
    "x86_64": Machine(
        audit_arch=0xC000003E,
        clone=56,
        ioctl=16,
        socket=41,
        has_x32=True,
        denied=_table(_X86_64 + _COMMON),
        absent=_table(_COMMON_ABSENT),
        unboxed=_table(_X86_64_UNBOXED),
    ),
    "aarch64": Machine(
        audit_arch=0xC00000B7,
        clone=220,
        ioctl=29,
        socket=198,
        has_x32=False,
        denied=_table(_AARCH64 + _COMMON),
        absent=_table(_COMMON_ABSENT),
        unboxed=_table(_AARCH64_UNBOXED),
    ),
}
