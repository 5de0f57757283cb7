"""Files that common tools execute or read instructions from when the folder around them is merely used."""

import re
from functools import cache

# The end of a path, then the tool that runs it. `*` matches within one name, `**` any number of folders.
_TABLE = """
    .envrc                                  direnv, when you enter the folder
    .env.fish                               fish, when you enter the folder
    .autoenv                                autoenv, when you enter the folder
    .mise.toml                              mise, when you enter the folder
    .mise.*.toml                            mise, when you enter the folder
    mise.toml                               mise, when you enter the folder
    mise.*.toml                             mise, when you enter the folder
    .mise/**                                mise, when you enter the folder
    .config/mise*                           mise, when you enter the folder
    .config/mise/**                         mise, when you enter the folder
    .rtx.toml                               mise, when you enter the folder
    .tool-versions                          asdf or mise, when you enter the folder
    .sdkmanrc                               SDKMAN, when you enter the folder
    .vscode/*                               VS Code, when you open the folder
    *.code-workspace                        VS Code, when you open it
    .idea/**                                JetBrains IDEs, when you open the folder
    .run/*                                  JetBrains IDEs, when you run a configuration
    .fleet/*                                JetBrains Fleet, when you open the folder
    .zed/*                                  Zed, when you open the folder
    .helix/*                                Helix, when you open the folder
    .exrc                                   vi, when you start it here
    .vimrc                                  vim, when you start it here
    .nvimrc                                 Neovim, when you start it here
    .nvim.lua                               Neovim, when you start it here
    .lvimrc                                 vim, when you open a file here
    .dir-locals*.el                         Emacs, when you open a file here
    *.sublime-project                       Sublime Text, when you open it
    .devcontainer.json                      your editor, when it opens the container
    .devcontainer/**                        your editor, when it opens the container
    .gitpod.yml                             Gitpod, when it opens the folder
    package.json                            npm, yarn, pnpm or bun: install and run
    .npmrc                                  npm and pnpm
    .yarnrc*                                yarn
    .yarn/releases/*                        yarn
    .yarn/plugins/**                        yarn
    .pnpmfile.*js                           pnpm
    pnpm-workspace.yaml                     pnpm
    .pnp.*js                                node started by yarn
    bunfig.toml                             bun
    deno.json*                              deno task
    *.config.js                             the JavaScript tool it configures
    *.config.cjs                            the JavaScript tool it configures
    *.config.mjs                            the JavaScript tool it configures
    *.config.ts                             the JavaScript tool it configures
    *.config.mts                            the JavaScript tool it configures
    .*rc.js                                 the JavaScript tool it configures
    .*rc.cjs                                the JavaScript tool it configures
    .*rc.mjs                                the JavaScript tool it configures
    gulpfile.*                              gulp
    Gruntfile.*                             grunt
    Jakefile*                               jake
    karma.conf.*                            karma
    .husky/**                               git, through husky
    .lintstagedrc*                          lint-staged, when you commit
    lefthook*.y*ml                          lefthook, when you commit
    .lefthook*                              lefthook, when you commit
    .overcommit.yml                         overcommit, when you commit
    .pre-commit-config.yaml                 pre-commit, when you commit
    .pre-commit-hooks.yaml                  pre-commit, when you commit
    .gitmodules                             git submodule
    conftest.py                             pytest
    pytest.ini                              pytest
    sitecustomize.py                        python, when it starts with this folder in its path
    usercustomize.py                        python, when it starts with this folder in its path
    *.pth                                   python, when it starts
    setup.py                                pip and other installers
    setup.cfg                               pip and other installers
    pyproject.toml                          pip, uv and the tools it configures
    hatch_build.py                          hatch, when it builds
    build.py                                poetry, when it builds
    uv.toml                                 uv
    pip.conf                                pip
    Pipfile                                 pipenv
    noxfile.py                              nox
    tox.ini                                 tox
    tasks.py                                invoke
    fabfile.py                              fabric
    dodo.py                                 doit
    manage.py                               Django
    .pylintrc                               pylint
    .flake8                                 flake8
    mypy.ini                                mypy
    .mypy.ini                               mypy
    Makefile                                make
    GNUmakefile                             make
    *.mk                                    make
    justfile                                just
    .justfile                               just
    Taskfile*.y*ml                          task
    CMakeLists.txt                          cmake
    CMakePresets.json                       cmake
    CMakeUserPresets.json                   cmake
    *.cmake                                 cmake
    meson.build                             meson
    configure                               ./configure
    SConstruct                              scons
    SConscript                              scons
    wscript                                 waf
    BUILD                                   bazel
    BUILD.bazel                             bazel
    WORKSPACE*                              bazel
    MODULE.bazel                            bazel
    .bazelrc                                bazel
    Rakefile                                rake
    *.rake                                  rake
    Gemfile                                 bundler
    *.gemspec                               bundler
    .bundle/config                          bundler
    .rspec                                  rspec
    .irbrc                                  irb
    .pryrc                                  pry
    gradlew*                                ./gradlew
    gradle/wrapper/*                        ./gradlew
    *.gradle                                gradle
    *.gradle.kts                            gradle
    gradle.properties                       gradle
    init.gradle.d/*                         gradle
    mvnw*                                   ./mvnw
    .mvn/**                                 maven
    pom.xml                                 maven
    build.xml                               ant
    *.sbt                                   sbt
    build.rs                                cargo build
    Cargo.toml                              cargo build
    .cargo/**                               cargo
    rust-toolchain*                         rustup, when you call cargo
    mix.exs                                 mix
    rebar.config*                           rebar3
    composer.json                           composer
    go.work                                 go
    Package.swift                           swift build
    *.csproj                                dotnet build
    *.props                                 dotnet build
    *.targets                               dotnet build
    dune                                    dune
    *.cabal                                 cabal
    Setup.hs                                cabal
    flake.nix                               nix
    shell.nix                               nix
    default.nix                             nix
    devenv.nix                              devenv
    Dockerfile*                             docker build
    *.dockerfile                            docker build
    Containerfile*                          podman build
    docker-compose*.y*ml                    docker compose
    compose*.y*ml                           docker compose
    Vagrantfile                             vagrant
    Procfile*                               foreman
    Tiltfile                                tilt
    Earthfile                               earthly
    Brewfile                                brew bundle
    Jenkinsfile*                            Jenkins, after a push
    .github/workflows/**                    GitHub Actions, after a push
    .github/actions/**                      GitHub Actions, after a push
    .gitea/workflows/**                     Gitea Actions, after a push
    .forgejo/workflows/**                   Forgejo Actions, after a push
    .gitlab-ci.y*ml                         GitLab CI, after a push
    .gitlab/**                              GitLab CI, after a push
    .circleci/**                            CircleCI, after a push
    .buildkite/**                           Buildkite, after a push
    .travis.yml                             Travis CI, after a push
    .drone.yml                              Drone, after a push
    .woodpecker*                            Woodpecker, after a push
    azure-pipelines*.yml                    Azure Pipelines, after a push
    bitbucket-pipelines.yml                 Bitbucket Pipelines, after a push
    .gdbinit                                gdb, when you start it here
    .lldbinit                               lldb, when you start it here
    .Rprofile                               R, when you start it here
    .Renviron                               R, when you start it here
    .mcp.json                               agents, which start the servers it names
    mcp.json                                agents, which start the servers it names
    .claude/**                              Claude Code, when you start it here
    .cursor/**                              Cursor, when you open the folder
    .cursorrules                            Cursor, which follows it
    .windsurf/**                            Windsurf, when you open the folder
    .windsurfrules                          Windsurf, which follows it
    .clinerules*                            Cline, which follows it
    .clinerules/**                          Cline, which follows it
    .codex/**                               Codex, when you start it here
    .gemini/**                              Gemini CLI, when you start it here
    .opencode/**                            opencode, when you start it here
    opencode.json*                          opencode, when you start it here
    .continue/**                            Continue, when you open the folder
    .amazonq/**                             Amazon Q, when you open the folder
    .kiro/**                                Kiro, when you open the folder
    .aider.conf.yml                         aider, when you start it here
    .goosehints                             goose, which follows it
    .agents/**                              agents, which follow it
    .github/copilot-instructions.md         Copilot, which follows it
    .github/instructions/**                 Copilot, which follows it
    AGENTS*.md                              agents, which follow it
    CLAUDE*.md                              Claude Code, which follows it
    GEMINI.md                               Gemini CLI, which follows it
    CONVENTIONS.md                          aider, which follows it
    SKILL.md                                agents, which follow it
"""
ENVIRONMENT_PROGRAMS = "the programs and activators of a virtual environment"
INSTALLED_PROGRAMS = "the programs of installed packages"


def find_runner(path: str) -> str | None:
    """Return the tool that runs a file, by its path relative to the workspace; None if no tool executes the file."""
    folder, _, name = path.rpartition("/")
    # Called for every file of a workspace: most rows are about the name alone, which is matched once.
    if folder and (found := _patterns()[0].search(path)):
        return _group_name(found, is_folder=True)
    return _group_name(found, is_folder=False) if (found := _patterns()[1].fullmatch(name)) else None


def _group_name(found: "re.Match[str]", *, is_folder: bool) -> str | None:
    return _rows(is_folder=is_folder)[found.lastindex - 1][1] if found.lastindex else None


@cache
def _rows(*, is_folder: bool) -> tuple[tuple[str, str], ...]:
    """Return the rows about files in certain folders, or those about names."""
    lines = [line.split(None, 1) for line in _TABLE.strip().splitlines()]
    return tuple((pattern, runner) for pattern, runner in lines if ("/" in pattern) == is_folder)


@cache
def _patterns() -> "tuple[re.Pattern[str], re.Pattern[str]]":
    """Return the rows about folders and those about names as one pattern each; the matching group is the row."""
    folders, names = (
        "|".join(f"({_ending(pattern)})" for pattern, _ in _rows(is_folder=is_folder)) for is_folder in (True, False)
    )
    # Case-insensitive, as on macOS: `makefile` is read by make as well.
    return re.compile(rf"(?:\A|/)(?:{folders})\Z", re.IGNORECASE), re.compile(names, re.IGNORECASE)


def _ending(pattern: str) -> str:
    parts = re.split(r"(\*\*|\*)", pattern)
    return "".join({"**": ".+", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts)
