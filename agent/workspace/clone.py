"""Clones the repository of a task outside the sandbox, without letting the repository make git run a program.

Credentials in the URL are passed to git in its environment: they are neither in the process list nor in `.git/config`.
"""

import base64
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from agent.backends.host import HostCommandRunner
from agent.backends.sandbox.git.config_entries import MAX_CONFIG_BYTES, parse_entries
from agent.vocabulary.errors import AgentError, InputError
from agent.workspace.git_command import Repository, find_program, read_start
from agent.workspace.git_state import describe_head
from tooling.contract.command import CommandRequest
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.output import decode_output, sanitize_output

LIMIT_S = 1800.0
_PROTOCOLS = ("https", "http", "ssh", "git", "file")
_SCP_FORM = lazy_pattern(r"[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^:].*")
_BRANCH = lazy_pattern(r"[A-Za-z0-9_][A-Za-z0-9._/+@#-]*")
_PASSED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "XDG_CONFIG_HOME",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
# Files of the run must not be committed.
_EXCLUDED = "/input/\n/output/\n/.skills/\n/.mcp-servers/\n"
_SETTINGS = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.askPass", ""),
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),
    ("init.templateDir", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("advice.detachedHead", "false"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryUrl:
    """The URL of a repository without credentials, and the credentials."""

    address: str
    user: str = ""
    password: str = ""

    @property
    def name(self) -> str:
        """The folder name of a clone."""
        last = re.split(r"[/:]", self.address.rstrip("/"))[-1].removesuffix(".git")
        return re.sub(r"[^A-Za-z0-9._-]", "-", last).strip(".-") or "repository"

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must never be shown or stored."""
        basic = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        if self.password:
            return (self.password, basic)
        # A token is often given as the user name.
        return (self.user, basic) if len(self.user) >= 16 and self.address.startswith("http") else ()


def parse_url(text: str) -> RepositoryUrl:
    """Parse the URL or path of a repository. Raises InputError."""
    url = text.strip()
    if not url or url.startswith("-") or any(char < " " for char in url):
        raise InputError("--repo needs the URL or the path of a git repository")
    if "://" not in url:
        if _SCP_FORM.fullmatch(url):
            return RepositoryUrl(address=url)
        path = Path(url).expanduser()
        if "::" in url or not path.exists():
            raise InputError(f"--repo {url}: neither a URL nor an existing folder")
        return RepositoryUrl(address=str(path.resolve()))
    parts = urlsplit(url)
    if parts.scheme not in _PROTOCOLS:
        raise InputError(f"--repo: {parts.scheme} URLs are not supported", f"use one of {', '.join(_PROTOCOLS)}")
    if parts.scheme == "ssh" and not parts.password:
        return RepositoryUrl(address=url)
    host = parts.netloc.rpartition("@")[2]
    return RepositoryUrl(
        address=urlunsplit(parts._replace(netloc=host)),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


class Cloner:
    """Clones repositories into a workspace atomically."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    async def open(self, url: RepositoryUrl, branch: str | None, workspace: Path, *, is_shallow: bool = False) -> Path:
        """Return the clone of a repository in the workspace, creating it if it is missing.

        Raises AgentError, in one line, if the repository or the branch is not available, or the folder is taken.
        """
        if branch is not None and not _BRANCH.fullmatch(branch):
            raise InputError(f"--branch {branch}: not the name of a branch")
        for folder in (workspace, workspace / url.name):
            if is_clone_of(folder, url):
                return _check_branch(folder, branch)
        target = workspace / url.name
        if target.exists() or target.is_symlink():
            raise InputError(f"{target} already exists and is not a clone of {url.address}", "move it away")
        partial = workspace / f".{url.name}.{secrets.token_hex(4)}.clone"
        try:
            await self._clone(url, branch, partial, is_shallow=is_shallow)
            exclude = partial / ".git" / "info" / "exclude"
            exclude.parent.mkdir(exist_ok=True)
            exclude.write_text(_EXCLUDED)
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        return target

    async def _clone(self, url: RepositoryUrl, branch: str | None, target: Path, *, is_shallow: bool) -> None:
        git = find_program("git", self._environ, target.parent)
        if git is None:
            raise AgentError("--repo needs git, which is not installed")
        words = ["clone", "--quiet", "--no-recurse-submodules", "--no-hardlinks", "--template="]
        words += ["--branch", branch] if branch else []
        words += ["--depth", "1", "--no-tags"] if is_shallow else []
        # For a plain path git ignores --depth.
        address = f"file://{url.address}" if is_shallow and url.address.startswith("/") else url.address
        request = CommandRequest(
            argv=(git, *words, "--", address, str(target)),
            cwd=target.parent,
            timeout_s=LIMIT_S,
            env=self._environment(url),
            cap_bytes=20_000,
        )
        ended = await HostCommandRunner({}).run(request)
        if ended.timed_out:
            raise AgentError(f"cannot clone {url.address}: it took longer than {LIMIT_S:g} s")
        if ended.exit_code != 0:
            raise AgentError(f"cannot clone {url.address}: {_reason(ended.output, url, target)}")

    def _environment(self, url: RepositoryUrl) -> dict[str, str]:
        """Return git's environment: no prompts, no hooks, and the credentials as a setting that is never stored."""
        settings = list(_SETTINGS)
        if url.user or url.password:
            parts = urlsplit(url.address)
            basic = base64.b64encode(f"{url.user}:{url.password}".encode()).decode()
            origin = f"{parts.scheme}://{parts.netloc}/"
            settings += [(f"http.{origin}.extraHeader", f"Authorization: Basic {basic}"), ("credential.helper", "")]
        named = (*_PASSED, *_PROXIES, *map(str.upper, _PROXIES))
        env = {name: self._environ[name] for name in named if name in self._environ}
        env |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": "", "GIT_CONFIG_NOSYSTEM": "1"}
        env |= {"GIT_ALLOW_PROTOCOL": ":".join(_PROTOCOLS), "GIT_SSH_COMMAND": "ssh -o BatchMode=yes"}
        env["GIT_CONFIG_COUNT"] = str(len(settings))
        for number, (key, value) in enumerate(settings):
            env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return env


def is_clone_of(folder: Path, url: RepositoryUrl) -> bool:
    """Whether a folder is a clone of a repository; found out without running anything in it."""
    text = read_start(folder / ".git" / "config", MAX_CONFIG_BYTES)
    remotes = {value for key, value in parse_entries(text) or () if key == "remote.origin.url"}
    return bool(remotes & {url.address, f"file://{url.address}"})


def _check_branch(folder: Path, branch: str | None) -> Path:
    head = describe_head(Repository(root=folder, git_dir=folder / ".git"))
    if branch is not None and branch not in head.split():
        raise InputError(f"{folder} is at {head}, not at {branch}", "use another session for another branch")
    return folder


def _reason(output: bytes, url: RepositoryUrl, target: Path) -> str:
    """Return git's last line about the failure, without credentials and without the temporary folder."""
    lines = [line.strip() for line in sanitize_output(decode_output(output)).splitlines() if line.strip()]
    fatal = next(
        (line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "git failed"
    )
    for secret in url.secrets:
        fatal = fatal.replace(secret, "***")
    return fatal.partition(": ")[2].replace(str(target), str(target.name)) or fatal
