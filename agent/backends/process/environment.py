"""The environment of commands: variables for building and testing, without secrets."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

_USER_VARIABLES = """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR CI SOURCE_DATE_EPOCH
"""
_COMPILERS = """
    CC CXX CPP LD AR CFLAGS CXXFLAGS CPPFLAGS LDFLAGS LD_LIBRARY_PATH DYLD_LIBRARY_PATH LIBRARY_PATH CPATH
    PKG_CONFIG_PATH CMAKE_PREFIX_PATH MAKEFLAGS
"""
_TOOLCHAINS = """
    VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV JAVA_HOME MAVEN_HOME M2_HOME GRADLE_HOME GRADLE_USER_HOME
    ANDROID_HOME ANDROID_SDK_ROOT KOTLIN_HOME SDKMAN_DIR NODE_PATH NODE_OPTIONS DENO_DIR DENO_INSTALL
    BUN_INSTALL VOLTA_HOME FNM_DIR COREPACK_HOME PNPM_HOME DOTNET_ROOT GEM_HOME GEM_PATH BUNDLE_PATH
    RBENV_ROOT PERL5LIB GHCUP_INSTALL_BASE_PREFIX OPAMROOT NIX_PATH
"""
_NETWORK = """
    SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO
    HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy all_proxy
"""
_FOLDERS = """
    XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME
"""
_ALLOWED = frozenset(f"{_USER_VARIABLES}{_COMPILERS}{_TOOLCHAINS}{_NETWORK}{_FOLDERS}".split())
_ALLOWED_PREFIXES = ("LC_", "PYTHON", "PYENV_", "PIP_", "UV_", "NVM_", "CARGO_", "RUST", "GO", "CGO_", "CCACHE_")
_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "COOKIE", "_AUTH")
_SECRET_PREFIXES = ("AGENT_", "GOOGLE_")

# Programs must not page, color or prompt.
_OVERRIDES = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1"}


def find_on_path(name: str, folders: Iterable[str]) -> str:
    """Return the path of a program; like `shutil.which`, whose import takes longer than the search."""
    paths = (os.path.join(folder, name) for folder in folders)  # noqa: PTH118 (no Path for each)
    return next((path for path in paths if os.access(path, os.X_OK) and os.path.isfile(path)), "")  # noqa: PTH113


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that commands may see."""
    passed = {name: value for name, value in environ.items() if _is_allowed(name, value)}
    passed.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    return {**passed, **_OVERRIDES}


def _is_allowed(name: str, value: str) -> bool:
    if name not in _ALLOWED and not name.startswith(_ALLOWED_PREFIXES):
        return False
    upper = name.upper()
    if upper.startswith(_SECRET_PREFIXES) or any(mark in upper for mark in _SECRET_WORDS):
        return False
    # A URL with a password is a secret too.
    return not ("://" in value and "@" in value)


def outside_of(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for a program outside the sandbox: none makes it load code from a working folder."""
    # Its settings are in the home folder, which is protected even if it is the working folder.
    kept = {name: value for name, value in environ.items() if name == "HOME" or not _leads_into(value, folder)}
    return {**kept, "PATH": path_outside(environ, (folder,))}


def path_outside(environ: Mapping[str, str], workspaces: Iterable[Path]) -> str:
    """Return PATH without relative folders and those in a workspace, such as its `.venv/bin`."""
    folders = (Path(entry) for entry in environ.get("PATH", os.defpath).split(os.pathsep) if entry.startswith("/"))
    inside = [workspace.resolve() for workspace in workspaces]
    return os.pathsep.join(str(one) for one in folders if not any(one.resolve().is_relative_to(top) for top in inside))


def _leads_into(value: str, folder: Path) -> bool:
    """Whether a variable names the folder, or a list of folders has an entry that is relative to it."""
    if str(folder) in value or str(folder.resolve()) in value:
        return True
    entries = value.split(os.pathsep)
    return len(entries) > 1 and "://" not in value and not all(entry.startswith("/") for entry in entries)
