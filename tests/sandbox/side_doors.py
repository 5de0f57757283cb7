"""Escapes through side doors: /proc, /sys and /dev, other ways to reach a process, and ways around the filter.

Like those in `probes.py`, each is a short shell script that exits with 0 if it succeeds, and does no harm.
"""


def _python(text: str) -> str:
    return f"$PY -c '{text}'"


def _syscall(*words: object) -> str:
    """Return Python code for a system call with numbers, whose result is `r`."""
    return f"import ctypes, os; r = ctypes.CDLL(None).syscall({', '.join(map(str, words))})"


def _opened(path: str, how: str) -> str:
    """Return a script that opens a file without changing it."""
    return f"exec 3{how}{path}"


def _set_user_id(call: str) -> str:
    """Return a script for a call that changes the mode of the file `p`."""
    before = (
        'import ctypes, os; c = ctypes.CDLL(None); p = (os.environ["WS"] + "/suid2").encode(); open(p, "w").close()'
    )
    return _python(f"{before}; {call}; exit(not os.stat(p).st_mode & 0o4000)")


_VICTIM = 'int(os.environ["VICTIM"])'
_ANY_DESCRIPTOR = "for f in /proc/self/fd/*; do [ ${f##*/} -gt 260 ] && exit 0; done; exit 1"
_NEW_USER = 'os.system("unshare -U true")'
# `mov eax, 20; int 0x80; ret`: the number of the process, asked for with a 32-bit call.
_OLD_CALL = (
    "import ctypes, mmap; m = mmap.mmap(-1, 4096, prot=7); "
    'm.write(bytes.fromhex("b814000000cd80c3")); '
    "a = ctypes.addressof(ctypes.c_char.from_buffer(m)); exit(ctypes.CFUNCTYPE(ctypes.c_int)(a)() <= 0)"
)

OF_READS = {
    "path-descriptor-opened-again": _python(
        'import os; f = os.open(os.environ["OUT"] + "/secret", os.O_PATH); '
        'exit(b"bait" not in open(f"/proc/self/fd/{f}", "rb").read())'
    ),
    "below-a-path-descriptor": _python(
        'import os; f = os.open(os.environ["OUT"], os.O_PATH); os.open("secret", os.O_RDONLY, dir_fd=f)'
    ),
}
OF_WRITES = {
    "truncate-by-path": (
        _python('import os; os.truncate(os.environ["OUT"] + "/secret", 5)') + " && :> $OUT/n21",
        "n21",
    ),
    "rename-by-call": (
        _python('import os; e = os.environ; open(e["WS"] + "/a", "w"); os.rename(e["WS"] + "/a", e["OUT"] + "/n22")'),
        "n22",
    ),
    "hard-link-by-call": (
        _python('import os; e = os.environ; open(e["WS"] + "/b", "w"); os.link(e["WS"] + "/b", e["OUT"] + "/n23")'),
        "n23",
    ),
}
OF_NETWORK = {
    "netlink-generic": _python("import socket; socket.socket(16, 3, 16)"),
    "netlink-of-sockets": _python("import socket; socket.socket(16, 3, 4)"),
    "netlink-of-filters": _python("import socket; socket.socket(16, 3, 12)"),
    "several-paths": _python(
        "import os, socket; s = socket.socket(2, 1, 262); s.settimeout(1); "
        's.connect(("127.0.0.1", int(os.environ["PORT"])))'
    ),
}
OF_PROC = {
    "folder-of-parent": "grep -q bait /proc/$PPID/root$OUT/secret",
    "parent-of-descriptor-of-root": "cd -P /proc/self/root/.. && grep -q bait .$OUT/secret",
    "last-process-number": _opened("/proc/sys/kernel/ns_last_pid", ">>"),
    "memory-of-victim": _opened("/proc/$VICTIM/mem", "<>"),
    "maps-of-victim": "grep -q . /proc/$VICTIM/maps",
    "mapped-files-of-victim": '[ -n "$(ls /proc/$VICTIM/map_files)" ]',
    "system-call-of-victim": "grep -q . /proc/$VICTIM/syscall",
    "files-of-victim": "grep -q bait /proc/$VICTIM/root$OUT/secret",
    "work-folder-of-victim": "grep -q bait /proc/$VICTIM/cwd/secret",
    "thread-of-victim": "grep -q bait /proc/$VICTIM/task/$VICTIM/fd/9",
    "program-of-victim": "readlink /proc/$VICTIM/exe | grep -q python",
    "oom-score-of-victim": _opened("/proc/$VICTIM/oom_score_adj", ">>"),
    "core-filter-of-victim": _opened("/proc/$VICTIM/coredump_filter", ">>"),
    "references-of-victim": _opened("/proc/$VICTIM/clear_refs", ">>"),
    "environment-of-first-process": "head -c 1 /proc/1/environ | grep -q .",
    "program-of-first-process": "readlink /proc/1/exe | grep -q .",
    "memory-of-first-process": _opened("/proc/1/mem", "<>"),
    "descriptors-of-all": "for p in /proc/[0-9]*; do ls -l $p/fd; done 2>/dev/null | grep -q $OUT",
    "any-inherited-descriptor": _ANY_DESCRIPTOR,
    "sockets-of-the-machine": "grep -q $OUT/listener /proc/net/unix",
    "addresses-of-the-kernel": "grep -v '^0000000000000000' /proc/kallsyms | grep -q .",
    "pages-of-the-machine": _opened("/proc/kpagecount", "<"),
    "magic-requests": _opened("/proc/sysrq-trigger", ">>"),
    "core-pattern": _opened("/proc/sys/kernel/core_pattern", ">>"),
    "module-loader": _opened("/proc/sys/kernel/modprobe", ">>"),
    "shared-memory-limits": _opened("/proc/sys/vm/overcommit_memory", ">>"),
    "number-of-namespaces": _opened("/proc/sys/user/max_user_namespaces", ">>"),
    "own-user-map": _opened("/proc/1/uid_map", ">>"),
}
OF_DEVICES = {
    "network-address": "cat /sys/class/net/*/address | grep -v 00:00:00:00:00:00 | grep -q :",
    "huge-pages": _opened("/sys/kernel/mm/transparent_hugepage/enabled", ">>"),
    "release-agent": "for f in /sys/fs/cgroup/*/release_agent; do (exec 3>>$f) && exit 0; done; exit 1",
    "console": _opened("/dev/console", ">>"),
    "kernel-messages": _opened("/dev/kmsg", ">>"),
    "disk": "for d in /dev/vd? /dev/sd? /dev/nvme0n1; do head -c 1 $d | grep -qa '' && exit 0; done; exit 1",
    "virtual-machines": _opened("/dev/kvm", "<>"),
    "user-file-systems": _opened("/dev/fuse", "<>"),
    "spooled-jobs": '[ -n "$(ls /var/spool)" ]',
    "names-of-hosts": _opened("/etc/hosts", ">>"),
}
OF_PRIVILEGES = {
    "become-another-user": "su -s /bin/sh nobody -c true",
    "file-capabilities": "cp /bin/true $WS/cap && setcap cap_net_raw+ep $WS/cap",
    "inner-sandbox": "bwrap --ro-bind / / true",
    "user-namespace-of-a-child": _python(f"import os; exit({_NEW_USER} != 0)"),
    "old-system-calls": _python(_OLD_CALL),
    "device-events": _python("import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 15)"),
    "kernel-ciphers": _python("import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)"),
    # The kernel ignores the upper half of these arguments.
    "wide-mode": _set_user_id("c.syscall(90, p, ctypes.c_ulong(1 << 32 | 0o4755))"),
    "mode-by-the-newest-call": _set_user_id("c.syscall(452, -100, p, 0o4755, 0)"),
    "mode-of-an-archive": _python(
        'import io, os, tarfile; os.chdir(os.environ["WS"]); f = io.BytesIO(); t = tarfile.open(fileobj=f, mode="w"); '
        'i = tarfile.TarInfo("suid3"); i.mode = 0o4755; t.addfile(i); t.close(); f.seek(0); '
        'tarfile.open(fileobj=f).extractall(); exit(not os.stat("suid3").st_mode & 0o4000)'
    ),
    "mode-in-memory": _python(
        'import ctypes, os, struct; p = (os.environ["WS"] + "/suid4").encode(); '
        'ctypes.CDLL(None).syscall(437, -100, p, struct.pack("QQQ", 0o101, 0o4755, 0), 24); '
        "exit(not os.stat(p).st_mode & 0o4000)"
    ),
    "wide-request": _python(
        "import ctypes, pty; m, s = pty.openpty(); "
        'exit(ctypes.CDLL(None).ioctl(s, ctypes.c_ulong(1 << 32 | 0x5412), b"x"))'
    ),
    "lease-of-a-program": _python('import fcntl, os; fcntl.fcntl(os.open("/usr/bin/env", os.O_RDONLY), 1024, 0)'),
    "steal-descriptor": _python(
        f"import ctypes, os; p = os.pidfd_open({_VICTIM}); exit(ctypes.CDLL(None).syscall(438, p, 9, 0) < 0)"
    ),
    "namespace-of-a-process": _python(
        f"import ctypes, os; p = os.pidfd_open({_VICTIM}); exit(ctypes.CDLL(None).syscall(308, p, 0x04000000) != 0)"
    ),
    "key-by-a-helper-of-the-kernel": _python(
        "import ctypes; c = ctypes.CDLL(None, use_errno=True); "
        'c.syscall(249, b"user", b"wl-none", b"x", -3); exit(ctypes.get_errno() not in (126, 2))'
    ),
    "key-of-the-session": _python(
        'import ctypes; exit(ctypes.CDLL(None).syscall(248, b"user", b"wl-probe", b"x", 1, -3) < 0)'
    ),
    "same-resource": _python(
        f"import ctypes, os; exit(ctypes.CDLL(None).syscall(312, os.getpid(), {_VICTIM}, 1, 0, 0) < 0)"
    ),
    "program-in-memory-as-root": _python(
        'import os; f = os.memfd_create("x"); os.write(f, open("/usr/bin/id", "rb").read()); '
        "os.fchmod(f, 0o4755); exit(not os.fstat(f).st_mode & 0o4000)"
    ),
    "memory-advice": _python(
        f"import ctypes, os; p = os.pidfd_open({_VICTIM}); exit(ctypes.CDLL(None).syscall(440, p, 0, 0, 20, 0) < 0)"
    ),
}
# What is changed of the process outside.
OF_SIGNALS = {
    "signal-to-thread": _python(f"import ctypes, os; ctypes.CDLL(None).syscall(200, {_VICTIM}, 10)"),
    "signal-to-thread-of-group": _python(f"import ctypes, os; v = {_VICTIM}; ctypes.CDLL(None).syscall(234, v, v, 10)"),
    "signal-with-value": _python(
        f'import ctypes, os, struct; ctypes.CDLL(None).syscall(129, {_VICTIM}, 10, struct.pack("iii116x", 10, 0, -1))'
    ),
    "signal-by-owner-of-a-thread": _python(
        "import fcntl, os, struct; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETSIG, 10); "
        f'fcntl.fcntl(r, 15, struct.pack("ii", 0, {_VICTIM})); '
        "fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC); os.write(w, bytes(1))"
    ),
    "attributes-of-a-file": _python(
        "import ctypes, os, struct; ctypes.CDLL(None).syscall(469, -100, "
        '(os.environ["OUT"] + "/secret").encode(), struct.pack("QIIII", 0x80, 0, 0, 0, 0), 24, 0)'
    ),
}
OF_GIT = {
    "hard-link-to-config": "ln $WS/.git/config $WS/c2 && echo >> $WS/c2",
    "config-opened-again": "exec 3< $WS/.git/config && echo >> /proc/self/fd/3",
    "config-exchanged": _python(
        'import ctypes, os; w = os.environ["WS"].encode(); open(w + b"/x1", "w").close(); '
        'exit(ctypes.CDLL(None).syscall(316, -100, w + b"/x1", -100, w + b"/.git/config", 2) != 0)'
    ),
    "config-truncated": "truncate -s +1 $WS/.git/config",
    "hooks-remounted": "mount -o remount,rw $WS/.git/hooks || umount -l $WS/.git/hooks || echo > $WS/.git/hooks/x",
    "hooks-by-tree-copy": "cp -rT $WS/.git $WS/g2 && rm -rf $WS/.git/hooks && mv $WS/g2/hooks $WS/.git/hooks",
}
