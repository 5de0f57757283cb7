"""Which files a command runs: scripts by name, and the build files that make, npm and similar programs read."""

from collections.abc import Iterator
from itertools import pairwise

from tooling.safety.shell.command import Command, is_unknown, join_path
from tooling.safety.shell.unwrap import language_of, unwrap

_BUILD_FILES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "npm": ("package.json",),
    "npx": ("package.json",),
    "yarn": ("package.json",),
    "pnpm": ("package.json",),
    "bun": ("package.json",),
    "deno": ("deno.json", "deno.jsonc"),
    "composer": ("composer.json",),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb"),
    "bundle": ("Gemfile", "Rakefile"),
    "rails": ("Rakefile", "bin/rails"),
    "cargo": ("build.rs", "Cargo.toml", ".cargo/config.toml"),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"),
    "mvn": ("pom.xml", ".mvn/jvm.config", ".mvn/maven.config"),
    "ant": ("build.xml",),
    "cmake": ("CMakeLists.txt",),
    "meson": ("meson.build",),
    "ninja": ("build.ninja",),
    "bazel": ("WORKSPACE", "MODULE.bazel", ".bazelrc"),
    "tox": ("tox.ini", "pyproject.toml"),
    "nox": ("noxfile.py",),
    "invoke": ("tasks.py",),
    "fab": ("fabfile.py",),
    "pytest": ("conftest.py", "pytest.ini", "pyproject.toml"),
    "pip": ("setup.py", "pyproject.toml"),
    "poetry": ("pyproject.toml",),
    "hatch": ("pyproject.toml",),
    "pre-commit": (".pre-commit-config.yaml",),
    "docker": ("Dockerfile", "compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"),
    "docker-compose": ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"),
    "podman": ("Dockerfile", "Containerfile"),
    "vagrant": ("Vagrantfile",),
    "direnv": (".envrc",),
    "mix": ("mix.exs",),
    "sbt": ("build.sbt",),
}
# These run the file after one of the options, or any file among their words.
_RUN_FILES = frozenset(
    {"ansible-playbook", "psql", "mysql", "sqlite3", "kubectl", "packer", "salt-call", "puppet", "at"}
)
_FILE_OPTIONS = frozenset({"-f", "--file", "--filename", "--makefile", "--script", "-c", "--config", "-x", "--init"})


def script_files(command: Command) -> Iterator[str]:
    """Yield the absolute paths of files that a command may run; not all of them exist."""
    words, program = command.words, command.program
    if not words or is_unknown(command.cwd):
        return
    names = list(_BUILD_FILES.get(program, ()))
    if "/" in words[0]:
        names.append(words[0])
    if language_of(program) or program in ("source", "."):
        names.append(unwrap(words, command.stdin).script)
    if program in _RUN_FILES or program in _BUILD_FILES:
        names += [word for before, word in pairwise(words) if before in _FILE_OPTIONS]
    if program in _RUN_FILES:
        names += [word for word in words[1:] if not word.startswith("-")]
    names += [redirect.target for redirect in command.redirects if not redirect.writes and language_of(program)]
    for name in dict.fromkeys(names):
        if name and not is_unknown(name):
            yield join_path(command.cwd, name)
