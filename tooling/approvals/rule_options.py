"""Words that make an ordinary command run another program or write elsewhere; a rule must spell them out."""

import re
from collections.abc import Sequence

from tooling.contract.lazy_pattern import lazy_pattern

# Long options with one of these words in their name take a program, code to load, or a file to write. `--file` and
# `--config` count as well: the content of such a file determines what the program does.
_NAMES = """
    exec execute execdir exec-batch exec-path extcmd ext-diff command cmd program prog shell script-shell rsh ssh
    sshcommand upload-pack receive-pack uploadpack receivepack open-files-in-pager pager editor tool gui askpass
    use-askpass proxy-command hook hooks hookspath plugin plugins load-plugins load loader preload require import
    import-module eval expression init init-file init-script init-hook rcfile startup startup-file config config-file
    config-env configfile settings options-file output out outfile output-file output-dir output-document
    output-directory out-dir outdir log-file logfile dump dump-header to-command checkpoint-action compress-program
    use-compress-program compress-prog info-script new-volume-script filter lua-filter
    post-renderer preprocessor pre runner run-command
    wrapper launcher linker toolexec vettool agentpath javaagent rsync-path template templates separate-git-dir
    target prefix root install-dir destdir directory index-url extra-index-url registry find-links trusted-host
    files-from from-file source include-path module-path rootdir basetemp confcutdir privileged volume mount cap-add
    device security-opt unsafe-paths remove-source-files smtp-server
"""
_LONG = frozenset(_NAMES.split())
# The last word of options such as `--tree-filter` and `--to-cmd`.
_LAST_WORDS = ("-filter", "-cmd", "-command", "-exec", "-program", "-hook", "-shell", "-pager", "-editor", "-script")
_DASHES = lazy_pattern(r"--?([A-Za-z][\w-]*)")
# Short options that mean the same, by program or by its subcommand.
_SHORT = {
    "git": "-c",
    "git config": "-f",
    "git grep": "-O",
    "git rebase": "-x",
    "git difftool": "-x",
    "git fetch": "-u",
    "git clone": "-u -c",
    "git archive": "-o",
    "git format-patch": "-o",
    "tar": "-I -F -C -P -T",
    "bsdtar": "-C -P",
    "rsync": "-e",
    "ssh": "-o -F -E -R -L -D -J -W -S",
    "scp": "-o -F -S -J",
    "sftp": "-o -F -S -D -b",
    "sort": "-o -T",
    "zip": "-TT -m -T",
    "man": "-P -C -H",
    "make": "-f -C -I -E",
    "gmake": "-f -C -I -E",
    "gcc": "-B -o -wrapper",
    "g++": "-B -o -wrapper",
    "curl": "-o -O -K -T -d -F -X -E",
    "wget": "-O -P -o -a -e -i",
    "find": "-exec -execdir -ok -okdir -delete -fprint -fprintf -fprint0 -fls",
    "fd": "-x -X",
    "xargs": "-a -I",
    "awk": "-f -e -i -l",
    "gawk": "-f -e -i -l",
    "sed": "-i -f",
    "env": "-S -C",
    "perl": "-e -E -M -i -I -d",
    "python": "-c -m -i",
    "python3": "-c -m -i",
    "node": "-e -p -r",
    "ruby": "-e -r -i -I",
    "php": "-r -S -d",
    "docker": "-v -H",
    "kubectl": "-f -k",
    "npm": "-c -g",
    "pip": "-t -i -f -r -c",
    "pip3": "-t -i -f -r -c",
    "go": "-exec -toolexec -vettool -o -C -overlay -modfile",
    "cargo": "-C -Z",
    "pytest": "-p -c -o",
    "psql": "-f -o -L",
    "mysql": "-e",
    "vim": "-c -S -u",
    "less": "-o -k",
    "gdb": "-x -ex",
    "java": "-javaagent -agentpath -agentlib -cp -jar",
    "rg": "--pre",
}
# `make SHELL=./x`, `make CC=…`: an assignment among the words changes which program is run.
_ASSIGNS = frozenset({"make", "gmake", "env", "ninja", "just", "dd", "gradle", "mvn", "ant"})
_ASSIGNMENT = lazy_pattern(r"(?:-D)?[A-Za-z_][\w.]*[:?+]?=")
# Settings that git takes from its configuration as names of programs, files or hosts; these are the usual others.
_PROGRAM_SETTING = lazy_pattern(
    r"(?!user\.|init\.|color\.|pull\.|push\.|fetch\.prune|rerere\.|advice\.)[A-Za-z-]+\..+", re.I
)

# Subcommands of git that write to a folder or file among their operands.
_DESTINATIONS = frozenset({"worktree", "clone", "init", "bundle"})
_LEADS_OUT = lazy_pattern(r"[/~]|.*[`$]|(?:.*/)?\.\.(?:/|$)")


def runs_or_writes_elsewhere(words: Sequence[str], covered: int) -> bool:
    """Return whether words beyond those covered by a rule make the command run or write something else."""
    if len(words) <= covered:
        return False
    program = words[0].rpartition("/")[2]
    subcommand = words[1] if len(words) > 1 else ""
    if program == "git" and subcommand in _DESTINATIONS and any(map(_LEADS_OUT.match, words[covered:])):
        return True
    short = f"{_SHORT.get(program, '')} {_SHORT.get(f'{program} {subcommand}', '')}".split()
    for word in words[covered:]:
        if word == "--":
            return False
        if word.startswith("-") and (_is_named(word) or any(_is_short(word, option) for option in short)):
            return True
        if program in _ASSIGNS and _ASSIGNMENT.match(word):
            return True
        if (program, subcommand) == ("git", "config") and _PROGRAM_SETTING.match(word):
            return True
    return False


def _is_named(word: str) -> bool:
    """Return whether a long option, whole or abbreviated, has one of the names; a pattern may become one."""
    found = _DASHES.match(word)
    if any(mark in word.partition("=")[0] for mark in "*?["):
        return True
    if found is None or (not word.startswith("--") and len(found[1]) < 4):
        return False
    name = found[1].lower()
    if name in _LONG:
        return True
    if not word.startswith("--"):
        return False
    # Abbreviated, the last word may be cut.
    return (len(name) > 2 and any(known.startswith(name) for known in _LONG)) or any(
        last in name or last.startswith(f"-{name.rpartition('-')[2]}") for last in _LAST_WORDS if "-" in name
    )


def _is_short(word: str, option: str) -> bool:
    """Return whether a word is an option, has a value attached to it, or is a cluster with its letter."""
    if word.partition("=")[0] == option:
        return True
    if len(option) != 2 or word.startswith("--"):
        return False
    return word.startswith(option) or (word[1:].isalpha() and len(word) <= 5 and option[1] in word[1:])
