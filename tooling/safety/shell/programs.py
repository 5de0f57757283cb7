"""Classify the words of common programs: text, patterns, paths that are read, paths that are written."""

import fnmatch
import re
from collections.abc import Iterator
from itertools import pairwise

from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import UNKNOWN, program_name


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The words of these are text, or they reveal nothing about the content of a path.
TEXT_ONLY = _word_set(
    "echo printf expr true false exit return let seq test [ [[ : type which whereis command hash kill wait jobs fg bg"
    " disown sleep date cal bc factor nproc uname id whoami hostname tput stty ulimit umask shopt set local declare"
    " typeset readonly unset export read getopts tr yes df free uptime w who groups logger numfmt basename dirname"
    " help break continue times suspend bind complete compgen alias unalias trap eval git-commit for arch getconf"
    " locale env printenv tty pidof pgrep ps top lscpu lsblk lsof ss ip ifconfig netstat"
)
# These only read names, sizes or permissions.
METADATA_ONLY = _word_set("ls stat file du touch chmod realpath readlink test [ dir exa eza lsd tree")
# The first plain word of these is a pattern or program text.
SCRIPT_FIRST = _word_set(
    "sed gsed awk gawk mawk nawk grep egrep fgrep zgrep rg ag ack jq yq tr expr pgrep pkill ast-grep sg"
)
WRITES_ALL = _word_set(
    "rm rmdir mv tee touch mkdir truncate chmod chown chgrp shred unlink mkfifo mknod fallocate srm setfacl chattr"
    " vi vim nvim nano emacs ed ex pico micro patch sponge dos2unix unix2dos rename strip patchelf chrpath mogrify"
)
WRITES_LAST = _word_set("cp ln install rsync gcp ginstall objcopy")
WRITES_IN_PLACE = _word_set("sed gsed perl ruby")
WRITE_OPTIONS = _word_set(
    "-o --output --out --outfile --output-file --output-dir --outdir --output-document --out-dir --target-directory"
    " --destination --dest --log-file -fprint -fprintf -fls --save-to"
)
# Options that take a destination.
_DESTINATION_OPTIONS = {
    "tar": ("-C", "--directory"),
    "bsdtar": ("-C",),
    "unzip": ("-d",),
    "cp": ("-t",),
    "mv": ("-t",),
    "ln": ("-t",),
    "install": ("-t",),
    "pip": ("-t", "--target", "--prefix", "--root"),
    "patch": ("-d",),
    "wget": ("-P", "-O"),
}
# Words of these that start with two slashes are build targets.
_BUILD_TOOLS = frozenset({"bazel", "bazelisk", "buck", "buck2", "pants", "plz", "please"})
_SLASH_OPTIONS = frozenset({"dotnet", "msbuild", "csc", "fsc"})
# Names of remote things that look like paths.
_REMOTE_NAME = lazy_pattern(r"/(?:aws|ecs|repos|users?|orgs|search|rate_limit)(?:/|$)")
_REMOTE_PROGRAMS = frozenset({"aws", "gh", "glab"})
_SLASH = lazy_pattern(r"/[A-Za-z]+(?::|$)")
_GREPS = frozenset({"grep", "egrep", "fgrep", "zgrep", "rg", "ggrep", "ag"})
_GIVES_PATTERN = lazy_pattern(r"-[A-Za-z]*[ef]$|-[ef].|--(?:regexp|file)\b")
# Options of these are not clusters of letters: the rest after the first letter is its value, as in `-Isrc/include`.
_JOINS_VALUES = _word_set(
    "gcc g++ cc c++ clang clang++ cpp ld rustc 7z 7za 7zz swig protoc gfortran nvcc tcc zig ar flex bison"
)
WRITE_NAMES = frozenset({"of", "DESTDIR"})
# Options whose value is text, not a path.
TEXT_OPTIONS: dict[str, frozenset[str]] = {
    program: _word_set(options)
    for program, options in {
        "git": "-m --message --grep -S -G --author --committer --format --pretty -c --since --until --after --before -L"
        " --date --trailer -b -B --onto --word-diff-regex --strategy-option --match --sort --points-at --contains",
        "grep": "-e --regexp --include --exclude --exclude-dir -A -B -C -m --max-count --label --color",
        "egrep": "-e --include --exclude --exclude-dir",
        "rg": "-e --regexp -g --glob --iglob -r --replace -t -T -A -B -C -m --type --type-not --sort",
        "ag": "-G --ignore --ignore-dir -A -B -C",
        "sed": "-e --expression -l",
        "gsed": "-e --expression",
        "awk": "-v -F --assign --field-separator -e --source",
        "gawk": "-v -F --assign --field-separator -e --source",
        "mawk": "-v -F",
        "jq": "--arg --argjson --indent",
        "yq": "-o -p",
        "find": "-name -iname -path -ipath -wholename -iwholename -regex -iregex -printf -newermt -type -perm -size"
        " -mtime -mmin -user -group -maxdepth -mindepth -lname",
        "fd": "-E --exclude -e --extension -t --type",
        "python": "-c -W -X",
        "perl": "-e -E -ne -pe -lne -lane",
        "ruby": "-e -r",
        "node": "-e --eval -p --print",
        "deno": "eval",
        "php": "-r",
        "lua": "-e",
        "tree": "-I -P",
        "tar": "--exclude --transform --xform --checkpoint-action --to-command",
        "rsync": "--exclude --include --filter -f",
        "cut": "-d -f -c -b --delimiter --fields",
        "sort": "-t -k --field-separator --key",
        "paste": "-d --delimiters",
        "column": "-s",
        "xargs": "-d -I -n -P -L --delimiter --replace",
        "gh": "-b -t --body --title --jq -q",
        "pytest": "-k -m --deselect --ignore-glob",
        "curl": "-H --header -d --data -A -X --request -w --write-out --data-raw",
        "wget": "--header -U",
        "gcc": "-D -x",
        "g++": "-D -x",
        "clang": "-D -x",
        "cmake": "-G -D",
        "diff": "--label -I",
        "less": "-p -P",
        "psql": "-c",
        "xmlstarlet": "-v -t -m -i -c -e -d -u -r",
        "xmllint": "--xpath",
        "mysql": "-e",
        "sqlite3": "",
        "date": "-d --date",
        "docker": "-e --env",
        "vim": "-c --cmd",
        "ffmpeg": "-vf -af -filter_complex",
        "convert": "-resize",
        "split": "-a",
        "nl": "-s",
        "tmux": "-t -s",
        "hg": "-m",
        "svn": "-m",
        "jest": "-t",
        "vitest": "-t",
        "go": "-run -bench -ldflags -tags -gcflags",
        "cargo": "--features",
        "mocha": "-g --grep",
        "npm": "-m --message",
        "docker-compose": "-e",
        "systemd-run": "-p",
        "expect": "-c",
        "emacs": "--eval",
        "watch": "-n",
        "flock": "-c",
        "script": "-c",
        "bash": "-c",
        "sh": "-c",
        "zsh": "-c",
        "dash": "-c",
        "su": "-c",
    }.items()
}
_NONE: frozenset[str] = frozenset()


def path_words(program: str, words: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    """Yield the words that may be paths, and whether they are written to."""
    if program in TEXT_ONLY:
        return
    text_options = TEXT_OPTIONS.get(program, _NONE)
    waits_for_script = program in SCRIPT_FIRST and not (program in _GREPS and any(map(_GIVES_PATTERN.match, words)))
    writes_all = program in WRITES_ALL or (
        program in WRITES_IN_PLACE and any(w.startswith(("-i", "--in-place")) for w in words)
    )
    last = _last_positional(words) if program in WRITES_LAST else -1
    options_end = False
    previous = ""
    for at in range(1, len(words)):
        word = words[at]
        if program == "ln" and last > at and word[:1] not in ("/", "~", "-"):
            # The target of a relative link is relative to the folder of the link.
            folder = words[last].rpartition("/")[0]
            word = f"{folder}/{word}" if folder else word
        before, previous = previous, word
        if before in text_options:
            waits_for_script = waits_for_script and before not in ("-e", "--regexp", "--expression", "--source")
            continue
        if word[:1] == "-" and not options_end:
            options_end = word == "--"
            if waits_for_script and word in ("-f", "--file", "--from-file"):
                waits_for_script = False
            yield from _attached_value(word, text_options, takes_joined=program in _JOINS_VALUES)
            continue
        if waits_for_script and before not in ("-f", "--file"):
            waits_for_script = False
            continue
        if (word.startswith("//") and program in _BUILD_TOOLS) or (program in _SLASH_OPTIONS and _SLASH.match(word)):
            continue
        if program in _REMOTE_PROGRAMS and _REMOTE_NAME.match(word):
            continue
        name, equals, value = word.partition("=")
        if equals and name.replace("-", "_").isidentifier() and "/" not in name:
            yield value, name in WRITE_NAMES
            continue
        is_written = (
            writes_all or at == last or before in WRITE_OPTIONS or before in _DESTINATION_OPTIONS.get(program, ())
        )
        yield word, is_written


def _last_positional(words: tuple[str, ...]) -> int:
    plain = [at for at in range(1, len(words)) if words[at][:1] != "-"]
    return plain[-1] if len(plain) > 1 else -1


def _attached_value(word: str, text_options: frozenset[str], *, takes_joined: bool) -> Iterator[tuple[str, bool]]:
    option, equals, value = word.partition("=")
    if equals:
        if option not in text_options and option[:2] not in text_options:
            yield value, option in WRITE_OPTIONS
        return
    if word[1:2] == "-" or word[:2] in text_options or " " in word:
        return
    at = next((index for index, char in enumerate(word) if char in "/~" or word.startswith("..", index)), None)
    if at is not None and at > 2 and takes_joined:
        at = 2
    if at is not None and at >= 2:
        yield word[at:], word[:2] in WRITE_OPTIONS


_MAX_ACTIONS = 100
_EXEC_ACTIONS = ("-exec", "-execdir", "-ok", "-okdir")
_NAMES = frozenset({"-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"})
_FILTERS = frozenset(
    {"!", "-not", "-mtime", "-mmin", "-ctime", "-atime", "-amin", "-cmin", "-size", "-newer", "-newermt", "-user"}
    | {
        "-group",
        "-perm",
        "-regex",
        "-iregex",
        "-links",
        "-inum",
        "-samefile",
        "-empty",
        "-xtype",
        "-executable",
        "-nouser",
    }
    | {"-nogroup", "-anewer", "-cnewer", "-used", "-lname", "-ilname", "-newerct", "-newerat", "-readable"}
)
_FD_EXEC_OPTIONS = frozenset({"-x", "-X", "--exec", "--exec-batch"})


def find_commands(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the commands that `find` or `fd` runs on its results, with glob patterns for the files."""
    if program_name(words).startswith("fd"):
        return _fd_commands(words)
    commands: list[tuple[str, ...]] = []
    for at, given in enumerate(words):
        if len(commands) >= _MAX_ACTIONS:
            return [*commands, (UNKNOWN,)]
        word = _find_action(given) if at and words[at - 1] not in _NAMES else given
        if word in _EXEC_ACTIONS:
            end = next((index for index in range(at + 1, len(words)) if words[index] in (";", "+")), len(words))
            commands.append(_fill_placeholders(words[at + 1 : end], _result_patterns(words, at)))
        elif word == "-delete" and "-empty" not in words[_branch_start(words, 1, at) : at]:
            commands.append(("rm", "-r", *_result_patterns(words, at)))
    return [command for command in commands if command]


def _find_action(word: str) -> str:
    """Return the action that a word of `find` is, or may become if it is a pattern like `-delet[e]`."""
    if word[:1] != "-" or not any(mark in word for mark in "*?["):
        return word
    return next((action for action in ("-delete", *_EXEC_ACTIONS) if fnmatch.fnmatchcase(action, word)), word)


def find_result_patterns(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return glob patterns for the output of `find`."""
    return _result_patterns(words, len(words))


def _result_patterns(words: tuple[str, ...], upto: int) -> tuple[str, ...]:
    options = next((at for at, word in enumerate(words) if at and word not in ("-H", "-L", "-P")), len(words))
    first = next((at for at, word in enumerate(words) if at >= options and word[:1] in ("-", "(", "!")), len(words))
    roots = words[options:first] or (".",)
    branch = words[_branch_start(words, first, upto) : upto]
    names = [
        branch[at + 1]
        for at in range(len(branch) - 1)
        if branch[at] in _NAMES and (at == 0 or branch[at - 1] not in ("!", "-not"))
    ]
    if names and "," not in words:
        return tuple(f"{root}/**/{name.rstrip('/').rpartition('/')[2] or '*'}" for root in roots for name in names)
    # A filtered result must not look like every file.
    is_link = ("-type", "l") in pairwise(branch)
    rest = "?*" if is_link or _FILTERS & {*branch} else "*"
    return tuple(f"{root}/**/{rest}" for root in roots)


def _branch_start(words: tuple[str, ...], first: int, upto: int) -> int:
    """Return where the branch of an action starts: after the last `-o` outside parentheses."""
    depth = 0
    for at in range(upto - 1, first - 1, -1):
        depth += (words[at] == ")") - (words[at] == "(")
        if depth == 0 and words[at] in ("-o", "-or"):
            return at + 1
    return first


def _fill_placeholders(command: tuple[str, ...], found: tuple[str, ...]) -> tuple[str, ...]:
    filled: list[str] = []
    for word in command:
        if word == "{}":
            filled += found
        elif "{}" in word:
            filled.append(word.replace("{}", found[0]))
        else:
            filled.append(word)
    return tuple(filled)


def _fd_commands(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    at = next((index for index, word in enumerate(words) if word.partition("=")[0] in _FD_EXEC_OPTIONS), None)
    if at is None:
        return _clustered_fd_commands(words)
    endings = [words[i + 1] for i, word in enumerate(words[:at]) if word in ("-e", "--extension") and i + 1 < at]
    found = tuple(f"./**/*.{ending}" for ending in endings) or ("./**/*",)
    attached = words[at].partition("=")[2]
    command = ((attached,) if attached else ()) + words[at + 1 :]
    if not any("{" in word for word in command):
        command = (*command, "{}")
    return [_fill_placeholders(command, found)]


def _clustered_fd_commands(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the command after a cluster of options such as `-Hx`, or attached to one as in `-xrm`."""
    for at, word in enumerate(words[1:], 1):
        found = re.fullmatch(r"-[A-Za-z]*?[xX](.*)", word)
        if found and not word.startswith("--"):
            return _fd_commands((*words[:at], "-x", *((found[1],) if found[1] else ()), *words[at + 1 :]))
    return []
