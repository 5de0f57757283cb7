"""Builds the sandbox policy from this machine: system paths, toolchains, repositories, secrets."""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from agent.backends.process.environment import clean_environment
from agent.backends.sandbox.git.protection import find_git_paths
from agent.backends.sandbox.home_folder import HomeFolders, find_home_folders, is_changeable
from agent.backends.sandbox.process_limits import default_limits
from agent.backends.sandbox.types import GeneratedFile, Link, ResourceLimits, SandboxPolicy, split_words
from agent.config.user_dirs import user_homes
from agent.vocabulary.errors import SandboxError
from tooling.contract.lazy_pattern import lazy_pattern

# Where version managers install interpreters, relative to the home folder; these contain no secrets.
_TOOLCHAIN_HOMES = (
    ".pyenv",
    ".rustup",
    ".nvm/versions",
    ".nodenv",
    ".volta",
    ".bun",
    ".deno",
    ".rbenv",
    ".rvm",
    ".asdf",
    ".goenv",
    ".jenv",
    ".ghcup",
    ".opam",
    ".sdkman/candidates",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".local/share/mise/installs",
    ".local/share/fnm",
    ".local/share/pipx/venvs",
    ".local/pipx/venvs",
)
_BIN_NAMES = ("bin", "sbin", "shims", "condabin")
# A folder with one of these next to its programs is a complete installation.
_INSTALLATION_MARKS = ("lib", "lib64", "pyvenv.cfg", "conda-meta", "include", "jre", "libexec")
# Tools that store keys next to programs: only the programs are visible.
_HOMES_WITH_SECRETS = (
    ".cargo",
    ".local",
    ".config",
    ".npm",
    ".gem",
    ".gradle",
    ".m2",
    ".docker",
    ".kube",
    ".aws",
    ".ssh",
)


def find_toolchains(environ: Mapping[str, str], home: Path, *, already_shown: Iterable[Path]) -> tuple[Path, ...]:
    """Return toolchain folders to show read-only; none is inside another, or inside `already_shown`."""
    shown = tuple(already_shown)
    found: list[Path] = []
    candidates = {*_known_toolchains(home), *_toolchains_on_path(environ.get("PATH", ""), home, shown)}
    for path in sorted(candidates, key=lambda path: path.parts):
        if _is_too_wide(path, home) or any(path.is_relative_to(root) for root in (*shown, *found)):
            continue
        found.append(path)
    return tuple(found)


def _known_toolchains(home: Path) -> Iterator[Path]:
    for name in _TOOLCHAIN_HOMES:
        path = home / name
        if _is_readable_folder(path):
            yield path
            # For a link to another disk: programs refer to the link, so both must be visible.
            yield path.resolve()


def _toolchains_on_path(path: str, home: Path, shown: tuple[Path, ...]) -> Iterator[Path]:
    for entry in path.split(os.pathsep):
        folder = Path(entry)
        # A folder in the workspace is visible anyway, and must not decide what else becomes visible.
        if not folder.is_absolute() or any(folder.is_relative_to(root) for root in shown):
            continue
        if not _is_readable_folder(folder):
            continue
        for candidate in {folder, folder.resolve()}:
            yield _installation_root(candidate, home)
        interpreter = folder / "python"
        if os.access(folder.parent / "pyvenv.cfg", os.R_OK) and os.access(interpreter, os.X_OK):
            yield _installation_root(interpreter.resolve().parent, home)


def _installation_root(folder: Path, home: Path) -> Path:
    """Return the installation that a folder of programs belongs to, or else the folder itself."""
    root = folder.parent
    if root.name in _HOMES_WITH_SECRETS or folder.name not in _BIN_NAMES or _is_too_wide(root, home):
        return folder
    return root if any(os.access(root / mark, os.R_OK) for mark in _INSTALLATION_MARKS) else folder


def _is_too_wide(path: Path, home: Path) -> bool:
    """Whether a folder contains more than a toolchain: a home, a parent of homes, or a top-level folder."""
    is_hidden_store = path.parent == home and path.name in _HOMES_WITH_SECRETS
    return len(path.parts) < 3 or home.is_relative_to(path) or path.parent == Path("/home") or is_hidden_store


def _is_readable_folder(path: Path) -> bool:
    # Checked first, because `is_dir` raises inside the home folder of another user.
    return os.access(path, os.R_OK | os.X_OK) and path.is_dir()


CONTAINS_SYSTEM = "contains the system itself, so commands cannot be given access to it"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_SETTINGS = split_words(
    """
    alternatives ssl/certs pki/tls/certs pki/ca-trust/extracted ca-certificates/extracted crypto-policies
    java java-11-openjdk java-17-openjdk java-21-openjdk maven
    """
)
_COPIED_SETTINGS = ("ld.so.cache", "services", "ssl/openssl.cnf")
_LINKED_SETTINGS = ("os-release", "localtime")
_MAX_COPIED_BYTES = 400_000
# Variables that name certificate bundles.
_CERTIFICATE_NAMES = split_words(
    """
    SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO PIP_CERT
    """
)
_PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
_FOLDER_NAMES = ("TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
# Private paths in a home folder, hidden even if the home folder is the workspace.
_SECRET_FOLDERS = split_words(
    """
    .ssh .gnupg .aws .azure .kube .docker .config/gcloud .config/gh .config/hub .config/op .password-store
    .local/share/keyrings .mozilla .config/google-chrome .config/chromium .thunderbird .terraform.d .config/agent
    """
)
_SECRET_FILES = split_words(
    """
    .netrc .npmrc .pypirc .git-credentials .config/git/credentials .cargo/credentials .cargo/credentials.toml .pgpass
    .my.cnf .vault-token .bash_history .zsh_history .python_history .s3cfg .boto
    """
)
# Names of the folders of sessions and worktrees in the data folder.
_OWN_WORKSPACE = lazy_pattern(r"(?:.*/)?(?:sessions/[^/]+/workspace|worktrees/[^/]+(?:/tree|\.steps))(?:/.*)?")
# In addition to files in /proc that only root can read, which a sandbox started by root could read, too.
_MACHINE_FILES = ("keys", "timer_list", "sched_debug", "latency_stats", "kcore")
_VAR_TMP = Path("/var/tmp")
_PLAIN_USER, _PLAIN_ID = "user", 1000


def build_policy(
    *,
    workspace: Path,
    environ: Mapping[str, str],
    extra_dirs: Iterable[Path] = (),
    hidden: Iterable[Path] = (),
    limits: ResourceLimits | None = None,
) -> SandboxPolicy:
    """Return the policy of a run. `hidden` are folders of this program that no command may see.

    Raises SandboxError for a folder that contains the system itself.
    """
    writable = _outermost((workspace, *extra_dirs))
    home = _home(environ)
    readable, links = _system_paths(writable)
    shown = (*readable, *writable)
    _refuse_own_folders(writable, hidden := tuple(path.resolve() for path in hidden))
    homes = find_home_folders(writable, user_homes(environ), environ)
    git = find_git_paths(writable, home)
    masked = _masked_paths(home, writable, hidden, homes)
    pinned = (*git.pinned, *_pinned_folders(writable, (*masked, *homes.frozen)))
    uid, gid = os.getuid() or _PLAIN_ID, os.getgid() or _PLAIN_ID
    certificates = _certificates(environ, shown)
    return SandboxPolicy(
        writable=writable,
        home=home,
        readable=(*readable, *certificates),
        links=links,
        generated_files=tuple(_generated_files(home, uid, gid)),
        toolchains=find_toolchains(environ, home, already_shown=shown),
        machine_files=tuple(_machine_files(Path("/proc"))),
        pinned=tuple(path for path in dict.fromkeys(pinned) if is_changeable(path, homes)),
        protected=git.protected,
        frozen=homes.frozen,
        thawed=homes.thawed,
        repositories=git.stores,
        hidden_folders=tuple(path for path in masked if path.is_dir()),
        hidden_files=tuple(path for path in masked if not path.is_dir()),
        limits=limits or default_limits(),
        environment=_environment(environ, home),
        uid=uid,
        gid=gid,
    )


def _outermost(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Resolve the folders and drop those inside others: a command could replace them while they are mounted."""
    outermost: list[Path] = []
    for folder in sorted({folder.resolve() for folder in folders}, key=lambda path: path.parts):
        if not any(folder.is_relative_to(other) for other in outermost):
            outermost.append(folder)
    for folder in outermost:
        if any(Path(path).resolve().is_relative_to(folder) for path in (*_SYSTEM, "/etc", "/proc", "/dev")):
            raise SandboxError(
                f"{folder} {CONTAINS_SYSTEM}",
                hint="choose a narrower folder",
            )
    return tuple(outermost)


def _machine_files(proc: Path) -> Iterator[Path]:
    """Yield the files with information about the whole machine or the memory of its processes."""
    try:
        entries = sorted(os.scandir(proc), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if not entry.name.isdigit() and entry.is_file(follow_symlinks=False):
            is_for_all = entry.stat(follow_symlinks=False).st_mode & stat.S_IROTH
            if entry.name in _MACHINE_FILES or not is_for_all:
                yield Path(entry.path)


def _home(environ: Mapping[str, str]) -> Path:
    home = Path(environ.get("HOME") or "/")
    return home if home.is_absolute() and len(home.parts) > 1 else Path("/home", _PLAIN_USER)


def _system_paths(writable: Iterable[Path]) -> tuple[tuple[Path, ...], tuple[Link, ...]]:
    readable: list[Path] = []
    # A workspace in it is mounted there, which is not possible below a link.
    is_used = any(folder.is_relative_to(_VAR_TMP) for folder in writable)
    links = [] if is_used else [Link(path=_VAR_TMP, target="/tmp")]
    for path in map(Path, (*_SYSTEM, *(f"/etc/{name}" for name in _LINKED_SETTINGS))):
        if path.is_symlink():
            links.append(Link(path=path, target=str(path.readlink())))
        elif path.is_dir():
            readable.append(path)
    readable += [path for path in (Path("/etc", name) for name in _SETTINGS) if os.access(path, os.R_OK)]
    return tuple(readable), tuple(links)


def _certificates(environ: Mapping[str, str], shown: Iterable[Path]) -> tuple[Path, ...]:
    shown = tuple(shown)
    named = {Path(environ[name]) for name in _CERTIFICATE_NAMES if environ.get(name)}
    return tuple(
        path
        for path in sorted(named)
        if path.is_absolute() and os.access(path, os.R_OK) and not any(path.is_relative_to(parent) for parent in shown)
    )


def _generated_files(home: Path, uid: int, gid: int) -> Iterator[GeneratedFile]:
    etc = Path("/etc")
    texts = {
        "passwd": f"{_PLAIN_USER}:x:{uid}:{gid}::{home}:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n",
        "group": f"{_PLAIN_USER}:x:{gid}:\nnogroup:x:65534:\n",
        "hosts": "127.0.0.1 localhost windlass\n::1 localhost\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
        "gitconfig": _git_identity(home),
    }
    yield from (GeneratedFile(path=etc / name, content=text.encode()) for name, text in texts.items())
    for name in _COPIED_SETTINGS:
        try:
            content = (etc / name).read_bytes()
        except OSError:
            continue
        if len(content) <= _MAX_COPIED_BYTES:
            yield GeneratedFile(path=etc / name, content=content)


def _git_identity(home: Path) -> str:
    """Return the name and email of the user's git configuration; the rest may name programs and keys."""
    for path in (home / ".gitconfig", home / ".config/git/config"):
        try:
            text = path.read_text("utf-8", "replace")
        except OSError:
            continue
        section = re.search(r"^\s*\[user\](.*?)(?=^\s*\[|\Z)", text, re.M | re.S)
        found = dict(re.findall(r"^\s*(name|email)\s*=\s*(.+?)\s*$", section.group(1), re.M)) if section else {}
        if found:
            return "[user]\n" + "".join(f"\t{key} = {value}\n" for key, value in sorted(found.items()))
    return ""


def _refuse_own_folders(writable: Iterable[Path], hidden: Iterable[Path]) -> None:
    """Raise SandboxError for a writable folder that is, or is inside, a folder of this program."""
    for folder in writable:
        for own in hidden:
            if folder.is_relative_to(own) and not _OWN_WORKSPACE.fullmatch(str(folder.relative_to(own))):
                raise SandboxError(f"{folder} contains Windlass's own files", hint="choose another folder with -C")


def _masked_paths(home: Path, writable: Iterable[Path], hidden: Iterable[Path], homes: HomeFolders) -> tuple[Path, ...]:
    for path in hidden:
        if any(path.is_relative_to(folder) for folder in writable) and is_changeable(path, homes):
            _create_own_folder(path)
    secrets = [home / name for name in (*_SECRET_FOLDERS, *_SECRET_FILES)]
    inside = [
        path.resolve()
        for path in (*secrets, *hidden)
        if os.access(path, os.F_OK) and any(path.resolve().is_relative_to(folder) for folder in writable)
    ]
    return tuple(path for path in dict.fromkeys(inside) if path not in writable)


def _create_own_folder(path: Path) -> None:
    """Create a folder of this program inside a writable one: only existing folders can be hidden."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SandboxError(
            f"{path} cannot be kept from commands: {error.strerror}", hint="choose a narrower folder"
        ) from error


def _pinned_folders(writable: Iterable[Path], masked: Iterable[Path]) -> tuple[Path, ...]:
    """Return the folders between a writable folder and a hidden path: renaming one would reveal the path."""
    pins = [
        path.parents[count]
        for path in masked
        for folder in writable
        if path.is_relative_to(folder)
        for count in range(len(path.parts) - len(folder.parts) - 1)
    ]
    return tuple(dict.fromkeys(pins))


def _environment(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    passed = {
        name: value
        for name, value in clean_environment(environ).items()
        if name.upper() not in _PROXY_NAMES and name not in _FOLDER_NAMES
    }
    own = {"HOME": str(home), "USER": _PLAIN_USER, "LOGNAME": _PLAIN_USER, "SHELL": "/bin/bash", "TMPDIR": "/tmp"}
    return {**passed, **own}
