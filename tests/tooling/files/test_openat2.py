"""What lies beneath a folder can be opened, nothing else, with and without openat2."""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tooling.files.openat2 import DIR_FLAGS, Opener, open_beneath, open_by_component, openat2

READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def open_dir(folder: Path) -> Iterator[int]:
    fd = os.open(folder, DIR_FLAGS)
    try:
        yield fd
    finally:
        os.close(fd)


def open_result(opener: Opener, root: int, path: str) -> str:
    """Return the real path of what was opened, or the name of the error."""
    try:
        fd = opener(root, path, READ)
    except OSError as error:
        # Both say no; which of the two words it is depends on where the link stands.
        return "no" if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EXDEV) else errno.errorcode[error.errno or 0]
    try:
        return str(Path(f"/proc/self/fd/{fd}").readlink())
    finally:
        os.close(fd)


@pytest.fixture(params=["openat2", "walk"])
def opener(request: pytest.FixtureRequest) -> Opener:
    chosen = openat2() if request.param == "openat2" else open_by_component
    if chosen is None:
        pytest.skip("this kernel has no openat2")
    return chosen


@pytest.fixture
def place(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "e" / "f").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("outside")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "up").symlink_to("..")
    (root / "in").symlink_to("d/e")
    (root / "d" / "link").symlink_to("e/f")
    return root


@pytest.mark.parametrize("path", ["d/e/f", "d", ".", "d/./e", "d//e/f"])
def test_what_is_inside_is_opened(opener: Opener, place: Path, path: str) -> None:
    with open_dir(place) as root:
        assert open_result(opener, root, path) == os.path.realpath(place / path)


@pytest.mark.parametrize(
    "path", ["..", "d/../../outside/f", "/etc/passwd", "out/f", "out", "up/outside/f", "in/f", "d/link"]
)
def test_links_and_ways_out_are_refused(opener: Opener, place: Path, path: str) -> None:
    with open_dir(place) as root:
        assert open_result(opener, root, path) == "no"


def test_what_is_not_there_is_not_found(opener: Opener, place: Path) -> None:
    with open_dir(place) as root:
        assert open_result(opener, root, "d/nothing") == "ENOENT"
        assert open_result(opener, root, "d/e/f/g") == "no"


def test_a_magic_link_leads_nowhere(opener: Opener) -> None:
    with open_dir(Path(f"/proc/{os.getpid()}")) as root:
        assert open_result(opener, root, "root/etc/passwd") == "no"
        assert open_result(opener, root, "cwd/.") == "no"


def test_a_null_character_cannot_shorten_a_path(place: Path) -> None:
    with open_dir(place) as root, pytest.raises(ValueError, match="null"):
        open_beneath(root, "d\0/../../outside", READ)


def test_no_descriptor_is_left_open(opener: Opener, place: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with open_dir(place) as root:
        for path in ("d/e/f", "d/e/f/g", "out/f", "nothing/x", ".."):
            open_result(opener, root, path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


NAMES = st.sampled_from(["a", "b", "c", "..", ".", ""])
TARGETS = st.lists(st.sampled_from(["a", "b", "..", "ws", "out"]), min_size=1, max_size=3).map("/".join)
TREES = st.dictionaries(
    st.sampled_from(["a", "b", "c", "a/a", "a/b", "b/a", "b/c"]),
    st.one_of(st.just("dir"), st.just("file"), TARGETS.map("link:{}".format), st.just("link:/")),
    max_size=7,
)


def create_tree(root: Path, tree: dict[str, str]) -> None:
    for name, kind in sorted(tree.items()):
        path = root / name
        with contextlib.suppress(OSError):
            if kind == "dir":
                path.mkdir()
            elif kind == "file":
                path.write_text("x")
            else:
                path.symlink_to(kind.removeprefix("link:"))


@settings(max_examples=300, deadline=None)
@given(TREES, st.lists(NAMES, max_size=5), st.booleans())
def test_both_openers_agree_and_never_leave_the_folder(tree: dict[str, str], parts: list[str], absolute: bool) -> None:
    path = ("/" if absolute else "") + "/".join(parts)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder).resolve()
        (base / "out").mkdir()
        (base / "ws").mkdir()
        create_tree(base / "ws", tree)
        with open_dir(base / "ws") as root:
            walked = open_result(open_by_component, root, path)
            kernel = openat2()
            if kernel is not None and ".." not in parts:
                assert open_result(kernel, root, path) == walked
        if walked.startswith("/"):
            assert walked == str(base / "ws") or walked.startswith(f"{base}/ws/")


def test_this_machine_has_openat2_or_the_walk_is_used(place: Path) -> None:
    with open_dir(place) as root:
        fd = open_beneath(root, "d/e/f", READ)
        assert stat.S_ISREG(os.fstat(fd).st_mode)
        os.close(fd)
