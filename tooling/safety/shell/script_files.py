"""The files that a command runs: scripts, build files of make, npm and similar programs, code in temporary folders."""

from collections.abc import Iterator
from itertools import pairwise

from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import Command, is_unknown, join_path
from tooling.safety.shell.path_access import PathAccess
from tooling.safety.shell.programs import METADATA_ONLY, SCRIPT_FIRST, TEXT_ONLY, WRITES_ALL, WRITES_LAST
from tooling.safety.shell.state import SideEffects
from tooling.safety.shell.tables.wrappers import WRAPPERS
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
_SCRATCH = lazy_pattern(r"/(?:private/)?(?:tmp|var/tmp|dev/shm)(?:/|$)")
_CODE_NAME = lazy_pattern(
    r".*\.(?:[cm]?[jt]sx?|py[wz]?|rb|p[lm]|php|lua|(?:ba|z|k|c|fi)?sh|jl|r|jar|war|class|java|kts?|scala|sc|groovy|gradle"
    r"|cmake|mk|ninja|l?hs|ml|zig|cr|v|go|rs|exe|dll|so|dylib|cljs?|exs?|erl|nims?|tcl|el|lisp|vim|nse|\w*proj|targets"
    r"|swift|dart|ps1|awk|sed|jq|m|ipynb|wasm|sql|sqlite3?rc|nf|smk|f?ish|applescript|scpt|feature|bats|t|csx|fsx|raku)",
)
# Programs that handle files without running their contents.
_HANDLES_FILES = (
    TEXT_ONLY
    | METADATA_ONLY
    | WRITES_ALL
    | WRITES_LAST
    | SCRIPT_FIRST
    | frozenset(
        """
        cat bat batcat head tail less more most wc sort uniq cut paste join comm diff colordiff delta difft cmp tac rev
        nl fold fmt pr expand unexpand column shuf split csplit tsort xxd hexdump hd od strings base64 base32 basenc
        cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum shasum sum iconv tar bsdtar zip unzip gzip
        gunzip zcat bzip2 bunzip2 bzcat xz unxz xzcat zstd unzstd zstdcat lz4 7z 7za 7zz ar cpio cd pushd find fd
        mktemp open() ruff black mypy pyright flake8 pylint isort bandit shellcheck shfmt gofmt rustfmt rustc javac
        gcc g++ cc c++ clang clang++ clang-format clang-tidy cppcheck ctags tokei cloc scc code codium subl cursor git
        gh docker podman curl wget scp ssh rsync dd cpp nm objdump readelf ldd size strip file mediainfo ffprobe
        """.split()  # noqa: SIM905 (a list that is read as words)
    )
)
# Options that name code or settings which the program runs; all other values are data or output.
_CODE_OPTION = lazy_pattern(
    r"--?(?:[A-Za-z]\w*[-_.:])*(?:config|conf|configfile|rc|rcfile|init|ini|inits?cript|site-dir|project|rootdir|root"
    r"|require|import|include|loader?|plugins?|plugin-dir|scripts?|file|[a-z]+file|lib|library|libs|toolchain|modules?"
    r"|template|classpath|cp|jar|processorpath|app|compiler|interpreter|python|linker|settings|rulesdir|extensions?"
    r"|include-build|preload|prefix|cwd|chdir|directory|confcutdir|bazelrc|gemfile|fplugin|initfile|startup|userconfig|toolexec|extld"
    r"|replace|args|relative-to|(?-i:[cfrSCLpuIB]))",
)
_DATA_OPTION = lazy_pattern(
    r".*(?:out|log|report|cache|tmp|temp|cov|data|dump|save|result|artifact|xml|html|trace|pid|sock|db|input|dest|target"
    r"|build|export|download|junit|storage|history|lock|profile|upload|snapshot)",
)
_DATA_NAME = lazy_pattern(
    r".*\.(?:out|log|txt|csv|tsv|jsonl?|xml|html|db|sqlite\d?|parquet|prof|png|jpe?g|svg|pdf|gz|zip|tgz|tar|bin|img|dot|cov"
    r"|info|lcov|pid|sock|mp4|wav|md|patch|diff|pem|crt|der)"
)
_COMPILERS = frozenset({"gcc", "g++", "cc", "c++", "clang", "clang++", "javac", "rustc"})
_SETTING = lazy_pattern(r"(-{1,2}[\w.:-]+|\w[\w./@-]*)=(.*)")
_JOINED = lazy_pattern(r"(-[A-Za-z]|-[A-Za-z]\w+=?|@)(/.*)")
_CODE_FLAGS = {**dict.fromkeys(("awk", "gawk", "mawk", "sed", "gsed", "jq"), "-f"), "vim": "-S", "nvim": "-S"}
# Linters that load plugins named in their settings.
_LOADS_PLUGINS = frozenset({"mypy", "flake8", "pylint"})
# Words after which a package manager is given a folder with code.
_LOADING = frozenset({"install", "add", "use", "i", "require", "link", "-s", "-replace", "--path", "-editable", "-e"})
# For these, the letter names an output, not code.
_WRITES_HERE = frozenset({("cmake", "-B"), ("meson", "-C"), ("mkdir", "-p"), ("psql", "-L"), ("java", "-D")})


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


def scratch_code(command: Command, access: PathAccess, effects: SideEffects, number: int) -> str:
    """Return a file in a temporary folder, outside the workspace, that the command runs or reads its settings from."""
    for path in _code_paths(command):
        if access.is_inside(path, command.cwd):
            continue
        full = join_path(command.cwd, path)
        # Files written by the text itself are read where they run.
        if _SCRATCH.match(full) and not (effects.created_before(full, number) and effects.files.get(full) is not None):
            return path
    return ""


def _code_paths(command: Command) -> Iterator[str]:
    words, program = command.words, command.program
    language = language_of(program)
    # The program inside a wrapper is a command of its own.
    if program in WRAPPERS:
        return
    if (language and program not in SCRIPT_FIRST) or program in ("source", "."):
        yield from _interpreter_paths(command, language)
        return
    if program in _HANDLES_FILES:
        flag = _CODE_FLAGS.get(program)
        yield from (words[at + 1] for at in range(1, len(words) - 1) if words[at] == flag)
        yield from (word[1:] for word in words if word[:2] == "@/" and program in _COMPILERS)
        yield from _linter_settings(words) if program in _LOADS_PLUGINS else ()
        return
    if "/" in words[0]:
        return
    for at, word in enumerate(words[1:], 1):
        before = words[at - 1]
        if word[:1] == "/" and before[:1] == "-" and not _is_data(program, before):
            if before in _LOADING or _CODE_OPTION.fullmatch(before) or _may_be_code(before, word):
                yield word
        elif word[:1] == "/" and before[:1] != "-" and (before in _LOADING or _CODE_NAME.fullmatch(word.lower())):
            yield word
        elif setting := _SETTING.fullmatch(word):
            is_path = setting[1].lower().endswith("path")
            names_code = is_path or _CODE_OPTION.fullmatch(setting[1]) or before in _LOADING or word[:2] == "-D"
            is_code = names_code or _may_be_code(setting[1], setting[2])
            if is_code and not _is_data(program, setting[1]):
                yield setting[2].rpartition("=")[2]
        elif (joined := _JOINED.fullmatch(word)) and not _is_data(program, joined[1][:2]):
            yield from (joined[2],) if word[0] == "@" or _CODE_OPTION.fullmatch(joined[1][:2]) else ()


def _linter_settings(words: tuple[str, ...]) -> Iterator[str]:
    for before, word in pairwise(words):
        setting = _SETTING.fullmatch(word)
        option, value = (setting[1], setting[2]) if setting else (before, word)
        if option.startswith("--") and _CODE_OPTION.fullmatch(option):
            yield value


def _may_be_code(option: str, value: str) -> bool:
    """Return whether an unlisted option may load its value as code, judged by the file name."""
    name = value.lower()
    is_long = len(option) > 2 and option[0] == "-"
    return _CODE_NAME.fullmatch(name) is not None or (is_long and _DATA_NAME.fullmatch(name) is None)


def _is_data(program: str, option: str) -> bool:
    return _DATA_OPTION.match(option.lower()) is not None or (program, option) in _WRITES_HERE


def _interpreter_paths(command: Command, language: str) -> Iterator[str]:
    """Yield the script of an interpreter, its input, and files loaded by options; later words belong to the script."""
    for at, word in enumerate(command.words[1:], 1):
        if word[:1] == "/" and (language != "sql" or command.words[at - 1] in ("-f", "--file", "-init")):
            yield word
        is_script = "." in word or "/" in word
        if word[:1] != "-" and is_script and command.words[at - 1][:1] != "-" and language != "sql":
            break
    if language:
        yield from (redirect.target for redirect in command.redirects if not redirect.writes)
