"""Opening beneath a folder never leaves it, with and without openat2."""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
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
        # All mean "refused"; which error it is depends on the position of the link and on the opener.
        return (
            "refused" if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EXDEV) else errno.errorcode[error.errno or 0]
        )
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
def workspace(tmp_path: Path) -> Path:
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
def test_paths_inside_are_opened(opener: Opener, workspace: Path, path: str) -> None:
    with open_dir(workspace) as root:
        assert open_result(opener, root, path) == os.path.realpath(workspace / path)


@pytest.mark.parametrize(
    "path", ["..", "d/../../outside/f", "/etc/passwd", "out/f", "out", "up/outside/f", "in/f", "d/link"]
)
def test_links_and_paths_outside_are_refused(opener: Opener, workspace: Path, path: str) -> None:
    with open_dir(workspace) as root:
        assert open_result(opener, root, path) == "refused"


def test_a_missing_path_is_not_found(opener: Opener, workspace: Path) -> None:
    with open_dir(workspace) as root:
        assert open_result(opener, root, "d/nothing") == "ENOENT"
        assert open_result(opener, root, "d/e/f/g") == "refused"


def test_magic_links_are_refused(opener: Opener) -> None:
    with open_dir(Path(f"/proc/{os.getpid()}")) as root:
        assert open_result(opener, root, "root/etc/passwd") == "refused"
        assert open_result(opener, root, "cwd/.") == "refused"


def test_a_null_character_in_a_path_is_an_error(workspace: Path) -> None:
    with open_dir(workspace) as root, pytest.raises(ValueError, match="null"):
        open_beneath(root, "d\0/../../outside", READ)


def test_no_descriptor_leaks(opener: Opener, workspace: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with open_dir(workspace) as root:
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
            if not Path(os.path.realpath(path.parent, strict=True)).is_relative_to(root):
                # A link of the tree leads out: the test itself must not write there.
                continue
            if kind == "dir":
                path.mkdir()
            elif kind == "file":
                path.write_text("x")
            else:
                path.symlink_to(kind.removeprefix("link:"))


@examples(300)
@given(TREES, st.lists(NAMES, max_size=5), st.booleans())
def test_both_openers_agree_and_never_leave_the_folder(tree: dict[str, str], parts: list[str], absolute: bool) -> None:
    path = ("/" if absolute else "") + "/".join(parts)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder).resolve()
        (base / "out").mkdir()
        (base / "ws").mkdir()
        create_tree(base / "ws", tree)
        with open_dir(base / "ws") as root:
            by_component = open_result(open_by_component, root, path)
            kernel = openat2()
            if kernel is not None and ".." not in parts:
                assert open_result(kernel, root, path) == by_component
        if by_component.startswith("/"):
            assert by_component == str(base / "ws") or by_component.startswith(f"{base}/ws/")


def test_open_beneath_works_with_or_without_openat2(workspace: Path) -> None:
    with open_dir(workspace) as root:
        fd = open_beneath(root, "d/e/f", READ)
        assert stat.S_ISREG(os.fstat(fd).st_mode)
        os.close(fd)
