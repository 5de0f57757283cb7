"""Real escapes, each a short shell script that exits with 0 if it succeeds, and does no harm."""

from dataclasses import dataclass
from platform import machine

from agent.backends.sandbox.seccomp import ARCHITECTURES
from tests.sandbox import side_doors


@dataclass(frozen=True, slots=True, kw_only=True)
class Escape:
    """An escape: `script` succeeds, or it creates `created_file` outside, or it leaves a process behind.

    `changed` names what it changes of a process outside, or of its shared memory.
    """

    name: str
    script: str
    created_file: str = ""
    survives: bool = False
    changed: str = ""


def _call(name: str, *arguments: object, reached: str = "") -> str:
    """Return a script for a system call; errors in `reached` mean that the kernel got to check its arguments."""
    table = ARCHITECTURES[machine()]
    number = {**table.denied, **table.absent}[name]
    return f"$PY $WS/.syscall.py {number} {reached or '-'} {' '.join(map(str, arguments))}"


def _python(text: str) -> str:
    return f"$PY -c '{text}'"


_READS = {
    "file-outside": "grep -q bait $OUT/secret",
    "ssh-key": "grep -q bait $FAKE_HOME/.ssh/id_rsa",
    "cloud-credentials": "grep -q bait $FAKE_HOME/.aws/credentials",
    "netrc": "grep -q bait $FAKE_HOME/.netrc",
    "history": "grep -q bait $FAKE_HOME/.bash_history",
    "shadow": "head -c 1 /etc/shadow | grep -q .",
    "list-outside": '[ -n "$(ls $OUT)" ]',
    "list-logs": '[ -n "$(ls /var/log)" ]',
    "machine-id": '[ -n "$(ls /var/lib/dpkg /run 2>/dev/null)" ]',
    "link-in-workspace": "grep -q bait $WS/link-out",
    "new-link": "ln -sfn $OUT/secret $WS/new-link && grep -q bait $WS/new-link",
    "link-to-folder": "grep -q bait $WS/folder-out/secret",
    "hard-link": "ln $OUT/secret $WS/hard && grep -q bait $WS/hard",
    "dot-dot": "cd $WS && grep -q bait ../outside/secret",
    "copy-with-tar": "tar -C $OUT -cf - secret | tar -xOf - | grep -q bait",
    "posix-shared-memory": "grep -q bait /dev/shm/$SHM",
    "raw-disk-or-kernel-log": "dd if=/dev/kmsg bs=8192 count=1 | grep -q .",
    "descriptor": "grep -q bait <&$FD",
    "descriptor-through-proc": "grep -q bait /proc/self/fd/$FD",
}
_WRITES = {
    "file": ("echo x > $OUT/new-1", "new-1"),
    "touch-through-link": ("echo x > $WS/folder-out/new-2", "new-2"),
    "dot-dot": ("cd $WS && echo x > ../outside/new-3", "new-3"),
    "move-out": ("echo x > $WS/m && mv $WS/m $OUT/new-4", "new-4"),
    "make-folder": ("mkdir $OUT/new-5", "new-5"),
    "append": ("echo x >> $OUT/appended && grep -q x $OUT/appended && cp $OUT/appended $OUT/new-6", "new-6"),
    "delete": ("rm $OUT/to-delete && touch $OUT/new-7", "new-7"),
    "rename": ("mv $OUT/to-rename $OUT/new-8", "new-8"),
    "mode": ("chmod 777 $OUT/secret && touch $OUT/new-9", "new-9"),
    "time": ("touch -d 2001-01-01 $OUT/secret && touch $OUT/new-10", "new-10"),
    "pipe": ("mkfifo $OUT/new-11", "new-11"),
    "shell-start-file": ("echo x >> $FAKE_HOME/.bashrc && cp $FAKE_HOME/.bashrc $OUT/new-12", "new-12"),
    "authorized-keys": ("echo x > $FAKE_HOME/.ssh/authorized_keys && touch $OUT/new-13", "new-13"),
    "shared-memory": ("echo x > /dev/shm/$SHM.new && mv /dev/shm/$SHM.new $OUT/new-14", "new-14"),
    "through-init": ("echo x > /proc/1/root$OUT/new-15", "new-15"),
    "through-victim": ("echo x > /proc/$VICTIM/root$OUT/new-16", "new-16"),
    "victim-folder": ("echo x > /proc/$VICTIM/cwd/new-17", "new-17"),
    "rename-workspace": ("mv $WS $WS.moved && mv $WS.moved $WS && touch $OUT/new-18", "new-18"),
    "system": ("touch /usr/.windlass-probe && rm /usr/.windlass-probe && touch $OUT/new-19", "new-19"),
    "settings": ("touch /etc/.windlass-probe && rm /etc/.windlass-probe && touch $OUT/new-20", "new-20"),
}
_ENVIRONMENT = {
    "api-key": '[ -n "$WINDLASS_TEST_API_KEY" ]',
    "cloud-key": '[ -n "$AWS_SECRET_ACCESS_KEY" ]',
    "agent-socket": '[ -n "$SSH_AUTH_SOCK" ]',
    "own-through-proc": "grep -aq WINDLASS_TEST_API_KEY /proc/self/environ",
    "any-process": "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -q VICTIM_TOKEN=bait",
    "victim": "tr '\\0' '\\n' < /proc/$VICTIM/environ | grep -q bait",
}
_NETWORK = {
    "tcp-loopback": "exec 3<>/dev/tcp/127.0.0.1/$PORT",
    "tcp-loopback-6": _python(
        'import os, socket; socket.create_connection(("::1", int(os.environ["PORT6"])), timeout=1)'
    ),
    "tcp-own-address": '[ -n "$OWN_ADDRESS" ] && exec 3<>/dev/tcp/$OWN_ADDRESS/$PORT',
    "curl": "curl -s -m 2 -o /dev/null telnet://127.0.0.1:$PORT < /dev/null || [ $? = 28 ]",
    "interfaces": "grep -v 'lo:' /proc/net/dev | grep -q :",
    "unix-socket": _python('import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ["OUT"] + "/listener")'),
    "nameless-socket": _python(
        'import os, socket; socket.socket(socket.AF_UNIX).connect("\\0" + os.environ["ABSTRACT"])'
    ),
    "datagram-socket": _python(
        "import os, socket; "
        'socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", os.environ["OUT"] + "/datagrams")'
    ),
    "raw-packets": _python("import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
    "raw-ip": _python("import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"),
    "netlink-audit": _python("import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9)"),
    "vsock": _python("import socket; socket.socket(40, socket.SOCK_STREAM)"),
}
_PROCESSES = {
    "see-by-number": "[ \"$(cut -d ' ' -f 22 /proc/$VICTIM/stat)\" = $VICTIM_BORN ]",
    "see-command-lines": "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q '[v]ictim-of-probes'",
    "see-with-ps": "ps ax | grep -q '[v]ictim-of-probes'",
    "signal": "kill -0 $VICTIM && [ \"$(cut -d ' ' -f 22 /proc/$VICTIM/stat)\" = $VICTIM_BORN ]",
    "find-and-signal": "pgrep -f '[v]ictim-of-probes'",
    "open-files": "grep -q bait /proc/$VICTIM/fd/9",
    "priority-of-others": "renice -n 1 -p $VICTIM",
    "own-priority": _python("import os; os.nice(-1)"),
    "realtime": "chrt -f 1 true",
    "trace": _call("ptrace", 0x4206, "$VICTIM", 0, 0),
    "read-memory": _call("process_vm_readv", "$VICTIM", 0, 0, 0, 0, 0),
    "sysv-shared-memory": _python(
        'import ctypes, os; c = ctypes.CDLL(None); k = c.shmget(int(os.environ["SHM_KEY"]), 0, 0); exit(k < 0)'
    ),
}
# What is changed of the process outside, as seen from there.
_CHANGES = {
    "priority": "renice -n 7 -p $VICTIM",
    "affinity": "taskset -p 1 $VICTIM",
    "scheduler": "chrt -b -p 0 $VICTIM",
    "io-priority": "ionice -c 3 -p $VICTIM",
    "limit": "prlimit --pid $VICTIM --nofile=77:77",
    "signal": "kill -USR1 $VICTIM",
    "signal-by-descriptor": _python(
        'import os, signal; signal.pidfd_send_signal(os.pidfd_open(int(os.environ["VICTIM"])), signal.SIGUSR1)'
    ),
    "signal-by-owner-of-a-pipe": _python(
        "import fcntl, os; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETSIG, 10); "
        'fcntl.fcntl(r, fcntl.F_SETOWN, int(os.environ["VICTIM"])); '
        "fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC); os.write(w, bytes(1))"
    ),
    # Their numbers can be guessed.
    "shared-memory": _python('import ctypes, os; ctypes.CDLL(None).shmctl(int(os.environ["SHM_ID"]), 0, None)'),
    "semaphores": _python('import ctypes, os; ctypes.CDLL(None).semctl(int(os.environ["SEM_ID"]), 0, 0, 0)'),
    "messages": _python('import ctypes, os; ctypes.CDLL(None).msgctl(int(os.environ["MSG_ID"]), 0, None)'),
}
_CHANGED_FACT = {
    "signal-by-descriptor": "signal",
    "signal-by-owner-of-a-pipe": "signal",
    "signal-to-thread": "signal",
    "signal-to-thread-of-group": "signal",
    "signal-with-value": "signal",
    "signal-by-owner-of-a-thread": "signal",
}
_PRIVILEGES = {
    "capabilities": "grep CapEff /proc/self/status | cut -f 2 | grep -q '[1-9a-f]'",
    "new-privileges": "grep -q 'NoNewPrivs:.*0' /proc/self/status",
    "become-root": _python("import os; os.setgroups([]); os.setuid(0)"),
    "change-owner": "touch $WS/owned && chown 12345 $WS/owned",
    "make-device": "mknod $WS/device c 1 3 && rm $WS/device",
    "set-user-id": "cp /bin/true $WS/suid && chmod 4755 $WS/suid && [ -u $WS/suid ]",
    "set-user-id-when-created": _python(
        'import os; p = os.environ["WS"] + "/suid2"; os.open(p, os.O_CREAT | os.O_WRONLY, 0o4755)'
        "; exit(not os.stat(p).st_mode & 0o4000)"
    ),
    "set-user-id-without-name": _python(
        "import os; f = os.open(os.environ['WS'], os.O_TMPFILE | os.O_WRONLY, 0o4755)".replace("'", '"')
        + "; exit(not os.fstat(f).st_mode & 0o4000)"
    ),
    "chroot": "chroot / true",
    "mount": "mkdir -p $WS/mnt && mount -t tmpfs none $WS/mnt && umount $WS/mnt",
    "bind-mount": "mkdir -p $WS/mnt && mount --bind $OUT $WS/mnt && umount $WS/mnt",
    "host-name": 'hostname "$(hostname)"',
    "kernel-log": "dmesg | head -n 1 | grep -q .",
    "kernel-keys": "grep -q . /proc/keys",
    "kernel-timers": "grep -q . /proc/timer_list",
    "kernel-settings": "cat /proc/sys/kernel/domainname > /proc/sys/kernel/domainname",
    "control-groups": "{ cd /sys/fs/cgroup/pids || cd /sys/fs/cgroup; } && mkdir wl-probe && rmdir wl-probe",
    "loop-devices": ": < /dev/loop-control",
    "tun-device": ": < /dev/net/tun",
    "type-into-terminal": _python('import fcntl, pty; m, s = pty.openpty(); fcntl.ioctl(s, 0x5412, b"x")'),
}
_NAMESPACES = {
    "user": "unshare -U true",
    "mount": "unshare -m true",
    "network": "unshare -n true",
    "process": "unshare -pf true",
    "time": "unshare -T true",
    "user-and-root": "unshare -Ur true",
    "clone-call": _python(
        "import ctypes, os; c = ctypes.CDLL(None); p = c.syscall("
        + str(ARCHITECTURES[machine()].clone)
        + ", 0x10000011, 0, 0, 0, 0)"
        "; os._exit(0) if p == 0 else exit(p < 0)"
    ),
    "join": "nsenter -t $VICTIM -u true",
}
_CALLS = {
    "keyring": _call("keyctl", 0, -3, 0),
    "bpf": _call("bpf", 0, 0, 0, reached="EINVAL,E2BIG,EFAULT"),
    "io-uring": _call("io_uring_setup", 1, 0, reached="EFAULT"),
    "perf": _call("perf_event_open", 0, 0, 0, 0, 0, reached="EFAULT"),
    "userfault": _call("userfaultfd", 1, reached="EINVAL"),
    "open-by-handle": _call("open_by_handle_at", -100, 0, 0, reached="EFAULT,EINVAL"),
    "pivot-root": _call("pivot_root", 0, 0, reached="EFAULT"),
    "watch-outside": _python(
        "import ctypes, os; c = ctypes.CDLL(None); "
        'exit(c.inotify_add_watch(c.inotify_init(), os.environ["OUT"].encode(), 256) < 0)'
    ),
    "kernel-log": _call("syslog", 10, 0, 0),
    "new-mount-api": _call("fsopen", 0, 0, reached="EFAULT"),
    "open-tree": _call("open_tree", -100, 0, 1, reached="EFAULT,EINVAL"),
    "clock": _call("settimeofday", 0, 0),
    "reboot": _call("reboot", 1, 2, 3, 0, reached="EINVAL"),
    "swap-off": _call("swapoff", 0, reached="EFAULT"),
    "fanotify": _call("fanotify_init", 0, 0),
    "clone3": _call("clone3", 0, 0, reached="EINVAL,EFAULT"),
}
_GIT = {
    "new-hook": "echo x > $WS/.git/hooks/post-commit",
    "change-hook": "echo x >> $WS/.git/hooks/pre-commit",
    "hook-mode": "chmod 755 $WS/.git/hooks/pre-commit",
    "move-hooks": "mv $WS/.git/hooks $WS/.git/hooks2 && mv $WS/.git/hooks2 $WS/.git/hooks",
    "hooks-by-template": "mkdir -p $WS/t/hooks && echo x > $WS/t/hooks/post-merge"
    " && git -C $WS init -q --template=$WS/t && [ -e $WS/.git/hooks/post-merge ]",
    "config": "git -C $WS config core.hooksPath /tmp/evil && git -C $WS config --unset core.hooksPath",
    "append-config": "echo >> $WS/.git/config",
    "replace-config": "cp $WS/.git/config $WS/c && mv $WS/c $WS/.git/config",
    "move-repository": "mv $WS/.git $WS/.git2 && mv $WS/.git2 $WS/.git",
    "exchange-repository": "cp -r $WS/.git $WS/.git3 && rm -rf $WS/.git && mv $WS/.git3 $WS/.git",
}
_SURVIVORS = {
    "new-session": "setsid sleep ${MARK}1 </dev/null >/dev/null 2>&1 &",
    "double-fork": "(setsid bash -c 'sleep ${MARK}2 & disown' </dev/null >/dev/null 2>&1 &)",
    "nohup": "nohup sleep ${MARK}3 </dev/null >/dev/null 2>&1 & disown",
    "without-environment": "env -i setsid sleep ${MARK}4 </dev/null >/dev/null 2>&1 &",
    "deaf": "(trap '' TERM HUP INT; setsid sleep ${MARK}5 </dev/null >/dev/null 2>&1 &)",
}

ESCAPES = (
    *(Escape(name=f"read/{name}", script=script) for name, script in {**_READS, **side_doors.OF_READS}.items()),
    *(
        Escape(name=f"write/{name}", script=script, created_file=file)
        for name, (script, file) in {**_WRITES, **side_doors.OF_WRITES}.items()
    ),
    *(Escape(name=f"environment/{name}", script=script) for name, script in _ENVIRONMENT.items()),
    *(Escape(name=f"network/{name}", script=script) for name, script in {**_NETWORK, **side_doors.OF_NETWORK}.items()),
    *(Escape(name=f"processes/{name}", script=script) for name, script in _PROCESSES.items()),
    *(
        Escape(name=f"change/{name}", script=script, changed=_CHANGED_FACT.get(name, name))
        for name, script in {**_CHANGES, **side_doors.OF_SIGNALS}.items()
    ),
    *(
        Escape(name=f"privileges/{name}", script=script)
        for name, script in {**_PRIVILEGES, **side_doors.OF_PRIVILEGES}.items()
    ),
    *(Escape(name=f"namespaces/{name}", script=script) for name, script in _NAMESPACES.items()),
    *(Escape(name=f"calls/{name}", script=script) for name, script in _CALLS.items()),
    *(Escape(name=f"git/{name}", script=script) for name, script in {**_GIT, **side_doors.OF_GIT}.items()),
    *(Escape(name=f"proc/{name}", script=script) for name, script in side_doors.OF_PROC.items()),
    *(Escape(name=f"devices/{name}", script=script) for name, script in side_doors.OF_DEVICES.items()),
    *(Escape(name=f"survive/{name}", script=script, survives=True) for name, script in _SURVIVORS.items()),
)
