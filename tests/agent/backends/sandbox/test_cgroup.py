"""Control groups in both versions, in a fake tree and, where this machine has them, for real."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from agent.backends.sandbox.cgroup import MOUNT, Cgroup, CgroupParent, find_cgroup_parent
from agent.backends.sandbox.types import ResourceLimits

LIMITS = ResourceLimits(memory_bytes=1000, processes=10)


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    (tmp_path / "cgroup").mkdir()
    return tmp_path / "cgroup"


def make_cgroup(path: Path, **texts: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, text in {"cgroup.procs": "", **texts}.items():
        (path / name.replace("__", ".")).write_text(text)
    return path


def write_own_cgroup(tmp_path: Path, text: str) -> Path:
    (tmp_path / "own").write_text(text)
    return tmp_path / "own"


def read_files(group: Cgroup) -> dict[str, str]:
    return {
        str(path.relative_to(folder.parent.parent)).replace(folder.name, "NEW"): path.read_text()
        for folder in group.folders
        for path in sorted(folder.iterdir())
    }


def test_version_2_creates_groups_next_to_our_own(tmp_path: Path, mount: Path) -> None:
    make_cgroup(mount, cgroup__controllers="cpu memory pids", cgroup__subtree_control="memory pids")
    make_cgroup(mount / "app.slice", cgroup__subtree_control="memory pids\n")
    make_cgroup(mount / "app.slice/me.scope", cgroup__subtree_control="\n")
    parent = find_cgroup_parent(mount=mount, own=write_own_cgroup(tmp_path, "0::/app.slice/me.scope\n"))
    slice_ = mount / "app.slice"
    assert parent == CgroupParent(memory=slice_, processes=slice_, memory_file="memory.max", is_per_thread=False)
    group = parent.create_cgroup(LIMITS)
    assert read_files(group) == {"app.slice/NEW/memory.max": "1000", "app.slice/NEW/pids.max": "10"}
    group.add_process(4711)
    group.kill()
    assert read_files(group) == {
        "app.slice/NEW/cgroup.kill": "1",
        "app.slice/NEW/cgroup.procs": "4711",
        "app.slice/NEW/memory.max": "1000",
        "app.slice/NEW/pids.max": "10",
    }


def test_version_2_without_delegated_controllers_is_not_used(tmp_path: Path, mount: Path) -> None:
    make_cgroup(mount, cgroup__controllers="memory pids", cgroup__subtree_control="\n")
    assert find_cgroup_parent(mount=mount, own=write_own_cgroup(tmp_path, "0::/\n")) is None


def test_version_1_does_not_exceed_our_own_limit(tmp_path: Path, mount: Path) -> None:
    make_cgroup(mount / "memory", memory__limit_in_bytes="9223372036854771712")
    make_cgroup(mount / "memory/us", memory__limit_in_bytes="600\n")
    make_cgroup(mount / "pids")
    parent = find_cgroup_parent(mount=mount, own=write_own_cgroup(tmp_path, "4:memory:/us\n8:pids:/\n0::/\n"))
    assert parent is not None
    group = parent.create_cgroup(LIMITS)
    group.add_thread(5)
    assert read_files(group) == {
        "memory/NEW/memory.limit_in_bytes": "600",
        "memory/NEW/tasks": "5",
        "pids/NEW/pids.max": "10",
        "pids/NEW/tasks": "5",
    }


def test_a_group_that_cannot_be_limited_is_removed(mount: Path) -> None:
    parent = CgroupParent(memory=mount, processes=mount / "missing", memory_file="memory.max", is_per_thread=False)
    with pytest.raises(OSError):
        parent.create_cgroup(ResourceLimits(memory_bytes=None, processes=3))
    assert list(mount.iterdir()) == []


def test_without_control_groups_there_is_no_parent(tmp_path: Path, mount: Path) -> None:
    assert find_cgroup_parent(mount=mount, own=tmp_path / "missing") is None


def test_groups_of_dead_processes_are_removed_and_others_are_not(tmp_path: Path, mount: Path) -> None:
    make_cgroup(mount / "pids")
    ended = subprocess.Popen(["true"])
    ended.wait()
    alive = f"windlass-{os.getpid()}-99"
    for name in (f"windlass-{ended.pid}-1", alive, "other"):
        (mount / "pids" / name).mkdir()
    find_cgroup_parent(mount=mount, own=tmp_path / "missing")
    assert sorted(path.name for path in (mount / "pids").iterdir() if path.is_dir()) == ["other", alive]


@pytest.mark.skipif(not os.access(MOUNT / "pids", os.W_OK), reason="needs writable control groups of version 1")
def test_processes_start_in_the_group_of_their_thread() -> None:
    parent = find_cgroup_parent()
    assert parent is not None
    group = parent.create_cgroup(ResourceLimits())
    found: list[str] = []

    def work() -> None:
        group.add_thread(threading.get_native_id())
        found.append(subprocess.run(["cat", "/proc/self/cgroup"], capture_output=True, text=True).stdout)
        group.release_thread()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert f"pids:/{group.folders[0].name}\n" in found[0]
    assert not any(folder.exists() for folder in group.folders)
