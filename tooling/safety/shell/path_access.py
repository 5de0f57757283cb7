"""Check where the paths of a command lead: inside the workspace, to public files, or outside."""

import fnmatch
import os
import re
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tooling.contract.lazy_pattern import lazy_pattern
from tooling.files.sensitive_files import SENSITIVE_FILES, is_sensitive_file
from tooling.safety.shell.command import HIDDEN, UNKNOWN, Command, display_word, is_unknown, join_path
from tooling.safety.shell.programs import METADATA_ONLY, path_words
from tooling.safety.shell.state import SideEffects

SYSTEM_DIRS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/snap", "/home/linuxbrew")
TEMP_DIRS = ("/tmp", "/var/tmp", "/private/tmp", "/dev/shm")
DEVICES = frozenset(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "tty", "fd")
)
_TOOLCHAIN_NAMES = """
    .cargo/bin .cargo/env .cargo/registry .rustup .nvm .pyenv .rbenv .rvm .nodenv .sdkman .local/bin
    .local/lib .bun .deno .local/share/uv .local/share/pnpm .local/share/mise .volta .asdf .fnm .goenv .jenv
    .ghcup .cabal/bin .opam .dotnet .yarn/bin go/bin go/pkg bin .m2/repository .gradle/caches .cache/pip
    .cache/uv .npm/_cacache miniconda3 anaconda3 .linuxbrew .juliaup .elan .moon .proto
"""
TOOLCHAIN_DIRS = tuple(f"~/{name}" for name in _TOOLCHAIN_NAMES.split())
_PUBLIC_FILE_NAMES = """
    /etc/os-release /etc/debian_version /etc/alpine-release /etc/redhat-release /etc/lsb-release /etc/issue
    /etc/timezone /etc/localtime /etc/shells /etc/mime.types /etc/hostname /proc/cpuinfo /proc/meminfo
    /proc/version /proc/loadavg /proc/uptime /proc/stat /proc/filesystems /proc/sys/kernel/osrelease
    /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max
"""
PUBLIC_FILES = frozenset(_PUBLIC_FILE_NAMES.split())
_GLOB = lazy_pattern(r"[*?\[]")
_SENSITIVE_GLOB = lazy_pattern(r"[\w.-]{2,}?[*?\[]")
# If the variable in front of one of these is unset, the path is absolute.
_AFTER_UNKNOWN = lazy_pattern(
    rf"[{UNKNOWN}{HIDDEN}]/?(?:etc/(?:passwd|shadow|sudoers|ssh|hosts|group)|root/|proc/self|\.ssh/|\.aws/)"
)
_TEMPLATE = lazy_pattern(r"\.(?:example|sample|template|dist)$")
_UPWARD_GLOB = lazy_pattern(r"(?<!\.)(?!\.\.\.)\.[.?*\[]*[?*\[][^/]*/")

# Files that builds, tests and package managers create again.
_BUILD_ARTIFACTS = lazy_pattern(
    r"(?:build|builds|_build|dist|out|output|outputs|target|bin|obj|node_modules|bower_components|__pycache__|__pypackages__"
    r"|\.venv|venv|\.virtualenv|env|\.tox|\.nox|\.eggs|htmlcov|coverage|\.coverage.*|\.nyc_output|\.next|\.nuxt|\.output"
    r"|\.svelte-kit|\.astro|\.parcel-cache|\.turbo|\.vite|\.angular|\.expo|\.docusaurus|storybook-static|site|_site|public/build"
    r"|\.gradle|\.kotlin|\.dart_tool|Pods|DerivedData|\.build|\.swiftpm|cmake-build-.*|CMakeFiles|CMakeCache\.txt"
    r"|\.terraform|\.serverless|\.aws-sam|cdk\.out|\.ipynb_checkpoints|\.hypothesis|\.benchmarks|\.stack-work|dist-newstyle"
    r"|_esy|elm-stuff|deps|\.elixir_ls|\.bundle|tmp|temp|\.tmp|\.temp|scratch|artifacts|test-results|test-reports|test-output"
    r"|playwright-report|reports?|logs?|generated|gen|\.cache|\.?[\w.-]*[_-]cache|\.?cache[\w-]*|[\w-]+\.egg-info|wheelhouse"
    r"|[\w*-]+\.dSYM|package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|poetry\.lock|uv\.lock|Gemfile\.lock|nohup\.out"
    r"|\.DS_Store|Thumbs\.db|core|a\.out|\.sass-cache|\.eslintcache|\.stylelintcache|\.dmypy\.json|\.metals|\.bloop"
    r"|.*\.(?:egg-info|pyc|pyo|o|obj|a|so|dylib|dll|exe|class|log|tmp|temp|bak|orig|rej|swp|swo|gcda|gcno|gcov|tsbuildinfo"
    r"|cache|pid|out|test|prof|profraw|coverage|whl|tgz|tar|gz|zip|map|min\.js|aux|toc|bbl|blg|fls|synctex|stackdump|core)"
    r"|.*~|#.*#|(?:build|dist|out|target|tmp|temp|test|coverage)[-_.][\w.-]+|[\w.-]+[-_.](?:build|dist|out|tmp|temp|bak|old|copy|backup|test|demo))"
)


def _prefixes(*roots: str) -> tuple[str, ...]:
    return tuple(root.rstrip("/") + "/" for root in roots)


_TEMP_PREFIXES = _prefixes(*TEMP_DIRS)
_TOOLCHAIN_PREFIXES = _prefixes(*TOOLCHAIN_DIRS)
_EXECUTABLE_PREFIXES = (*_prefixes(*SYSTEM_DIRS), *_TOOLCHAIN_PREFIXES)


@lru_cache(maxsize=64)
def _temp_root_pattern(root: str) -> "re.Pattern[str]":
    # A path that climbs out of the workspace keeps its name.
    return re.compile(rf"{re.escape(root[:-1])}(?![\w.-])(?!\S*/\.\.)")


class PathAccess:
    """Decides which paths a command may use in a workspace; caches file system lookups."""

    def __init__(self, roots: tuple[Path, ...], home: str) -> None:
        resolved = [os.path.realpath(root) for root in roots]
        self._roots = _prefixes(*dict.fromkeys((*map(str, roots), *resolved)))
        self._writable = (*self._roots, *_prefixes(*TEMP_DIRS))
        self._readable = (*self._writable, *_prefixes(*SYSTEM_DIRS))
        self._temp_roots = [_temp_root_pattern(root) for root in self._roots if root.startswith(_TEMP_PREFIXES)]
        self._home = home
        self._allowed_cache: dict[tuple[str, bool], bool] = {}
        self._realpath_cache: dict[str, str] = {}

    @classmethod
    def for_roots(cls, *roots: Path) -> "PathAccess":
        """Return the access for these workspace folders and the current user's home."""
        # As text: a `Path` takes longer than the verdict on a short command.
        home = os.path.expanduser("~")  # noqa: PTH111
        # Without a home folder no path is inside it.
        return cls(roots, "/nonexistent" if home == "~" else home)

    def problems(self, command: Command, effects: SideEffects, number: int) -> Iterator[str]:
        """Yield a reason for every path that is outside the workspace or usually contains secrets."""
        words = command.words
        if words and "/" in words[0] and not effects.created_before(join_path(command.cwd, words[0]), number):
            yield from self._program_problem(words[0], command.cwd)
        only_metadata = (
            bool(words)
            and (
                command.program in METADATA_ONLY
                or words[:3] == ("git", "rm", "--cached")
                or _is_template_copy(words)
                # It prints certificates, never the key beside one.
                or (words[:2] == ("openssl", "x509") and "-signkey" not in words)
            )
        )
        for path, writes in named_paths(command):
            yield from self._problem(path, command.cwd, writes=writes, only_metadata=only_metadata)
        for redirect in command.redirects:
            yield from self._problem(
                redirect.target, command.cwd, writes=redirect.writes, only_metadata=redirect.writes
            )

    def paths_outside(self, command: Command) -> Iterator[str]:
        """Yield the absolute form of every path of a command that is outside the workspace."""
        redirects = [(redirect.target, redirect.writes) for redirect in command.redirects]
        for word, writes in (*named_paths(command), *redirects):
            path = _plain_path(word)
            if path and not self._is_allowed(path, command.cwd, writes=writes):
                yield join_path(command.cwd, path)

    def canonical(self, path: str, cwd: str) -> str:
        """Return a path as rules match it: `./x` in the workspace, `~/x` at home, otherwise absolute."""
        if path.startswith(UNKNOWN):
            return path
        full = join_path(cwd, path)
        if full.startswith("~"):
            expanded = self._expand_home(full)
            return full if not _is_under(expanded, self._roots) else self._relative(expanded)
        if _is_under(full, self._roots):
            return self._relative(full)
        if full == self._home or full.startswith(self._home.rstrip("/") + "/"):
            return "~" + full[len(self._home.rstrip("/")) :]
        return full

    def is_inside(self, path: str, cwd: str) -> bool:
        """Return whether a path is in the workspace, with links resolved."""
        full = self._expand_home(join_path(cwd, path))
        return _is_under(full, self._roots) and _is_under(self._resolve_links(full), self._roots)

    def as_rules_see(self, text: str) -> str:
        """Return a text in which a workspace below a folder for temporary files does not look temporary."""
        for root in self._temp_roots:
            text = root.sub("/workspace", text)
        return text

    def is_temporary(self, path: str, cwd: str) -> bool:
        """Return whether a path is below a folder for temporary files."""
        full = join_path(cwd, path)
        return _is_under(full, _TEMP_PREFIXES) and full not in TEMP_DIRS and not _is_under(full, self._roots)

    def _program_problem(self, path: str, cwd: str) -> Iterator[str]:
        full = join_path(cwd, path)
        if full.startswith(UNKNOWN) or is_unknown(full.rpartition("/")[0]):
            return
        is_allowed = _is_under(self._expand_home(full), self._roots) or _is_under(full, _EXECUTABLE_PREFIXES)
        if not is_allowed:
            yield f"{display_word(path)} is a program outside the workspace"

    def _problem(self, word: str, cwd: str, *, writes: bool, only_metadata: bool) -> Iterator[str]:
        path = _plain_path(word)
        if not path:
            return
        if not only_metadata and _is_sensitive(path):
            yield f"{display_word(word)} usually contains secrets"
        elif _AFTER_UNKNOWN.search(path) or not self._is_allowed(path, cwd, writes=writes):
            yield f"{display_word(word)} is outside the workspace"

    def _is_allowed(self, path: str, cwd: str, *, writes: bool) -> bool:
        full = join_path(cwd, path)
        key = (full, writes)
        known = self._allowed_cache.get(key)
        if known is None:
            known = self._allowed_cache[key] = self._compute_allowed(full, path, writes=writes)
        # `..` out of the workspace into a public folder is more likely a mistake than intended.
        return known and not (".." in path and self._climbs_out(full, path, cwd))

    def _climbs_out(self, full: str, path: str, cwd: str) -> bool:
        goes_up = ".." in path.split("/") and not path.startswith(("/", "~"))
        return goes_up and _is_under(cwd, self._roots) and not _is_under(full, self._roots)

    def _compute_allowed(self, full: str, path: str, *, writes: bool) -> bool:
        if full.startswith((UNKNOWN, "/dev/fd/")) or full in DEVICES:
            return True
        if _UPWARD_GLOB.search(path):
            return False
        if not writes and (full in PUBLIC_FILES or (full[0] == "~" and _is_under(full, _TOOLCHAIN_PREFIXES))):
            return True
        full = self._expand_home(full)
        allowed = self._writable if writes else self._readable
        return _is_under(full, allowed) and _is_under(self._resolve_links(full), allowed)

    def _resolve_links(self, full: str) -> str:
        """Return the path with links resolved, up to its first unknown part."""
        parts = full.split("/")
        fixed = len(parts)
        if is_unknown(full) or _GLOB.search(full):
            fixed = next(at for at, part in enumerate(parts) if is_unknown(part) or _GLOB.search(part))
        folder, name = "/".join(parts[: fixed - 1]) or "/", parts[fixed - 1]
        real = self._realpath_cache.get(folder)
        try:
            if real is None:
                real = self._realpath_cache[folder] = os.path.realpath(folder)
            last = f"{real.rstrip('/')}/{name}"
            is_link = stat.S_ISLNK(os.lstat(last).st_mode)
            return os.path.realpath(last) if is_link else last
        except FileNotFoundError:
            return f"{real}/{name}" if real is not None else full
        except (OSError, ValueError):
            return "/"

    def _expand_home(self, full: str) -> str:
        return self._home + full[1:] if full == "~" or full.startswith("~/") else full

    def _relative(self, full: str) -> str:
        root = next(root for root in self._roots if _is_under(full, (root,)))
        rest = full[len(root) :]
        return f"./{rest}" if rest else "."


def _plain_path(word: str) -> str:
    """Return the path a word denotes, or an empty string if it cannot be one."""
    if word.startswith("file:"):
        return word[5:].replace("//", "/", 1)
    # No file name is this long.
    return "" if "://" in word or len(word) > 8192 else word.removeprefix("@")


def named_paths(command: Command) -> Iterator[tuple[str, bool]]:
    """Yield the words of a command that are paths, and whether they are written to."""
    words, program = command.words, command.program
    if program not in ("cd", "pushd"):
        yield from path_words(program, words)
        return
    targets = [word for word in words[1:] if not word.startswith(("-", "+"))]
    if program == "cd" and not targets and "-" not in words:
        targets = ["~"]
    yield from ((target, False) for target in targets)


def _is_under(path: str, prefixes: tuple[str, ...]) -> bool:
    """Return whether a path is one of the folders or inside one, by whole components."""
    return f"{path}/".startswith(prefixes)


def _is_sensitive(path: str) -> bool:
    name = path.rpartition(":")[2] if ":" in path else path
    if is_sensitive_file(name):
        return True
    last = name.rpartition("/")[2]
    if not _GLOB.search(last):
        return False
    if last.startswith("*."):
        return is_sensitive_file("x" + last[1:])
    return _SENSITIVE_GLOB.match(last) is not None and any(fnmatch.fnmatchcase(file, last) for file in SENSITIVE_FILES)


def _is_template_copy(words: tuple[str, ...]) -> bool:
    """Return whether a file like `.env` is only created from its published example."""
    return words[0] in ("cp", "mv") and any(_TEMPLATE.search(word) for word in words[1:-1])


def is_build_artifact(canonical: str) -> bool:
    """Return whether a path in the workspace is one that builds create again."""
    if not canonical.startswith("./"):
        return False
    parts = [part for part in canonical.removeprefix("./").split("/") if part not in ("", "**")]
    if parts and parts[-1] == "*":
        parts.pop()
    return any(_BUILD_ARTIFACTS.fullmatch(part) for part in parts)
