"""Judge programs that no table describes by their words: commands in options and among words, harmless verbs."""

import re

from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import NestedCode, ShellText, program_name
from tooling.safety.shell.programs import SCRIPT_FIRST, TEXT_ONLY

# The words of these are text for readers, even if they look like commands.
_SHOWS_TEXT = (
    TEXT_ONLY
    | SCRIPT_FIRST
    | frozenset(
        """
        cat tee git hg svn jj gh glab man info tldr cheat apropos ctags look spell aspell typos cspell vale comm diff
        cowsay figlet toilet banner boxes say espeak notify-send wall dialog whiptail zenity pytest jest vitest mocha
        ava tap rspec phpunit cucumber behave ctest commitlint cz commitizen changeset pre-commit shellcheck bashate
        bats open() python pip strings qrencode translate wc head tail less more sqlite3 psql mysql duckdb mariadb
        """.split()  # noqa: SIM905 (a list that is read as words)
    )
)
# Options whose value is a command in every program that has them.
_COMMAND_OPTION = lazy_pattern(
    r"--?(?:[A-Za-z]\w*[-_.])*"
    r"(?:exec|execute|cmd|command|commands|hook|hooks|shell|pager|editor|runner|wrapper|launcher|preprocessor|callback"
    r"|interpreter|askpass|rsh|onchange|onsuccess|onfailure|prepare|cleanup|preview|program|proxycommand|spawn|notify"
    r"|(?:pre|post|before|after|on)[-_]?(?:run|build|test|install|start|stop|exit|change|success|fail|failure|error|render"
    r"|process|commit|sync|update|rotate|script|compile|save|open|close|connect|resume|complete|finish|done|match))"
    r"(?:[-_.](?:lines?|batch|cmd|command|start|end|exit|before|after))?"
)
# Programs at the start of a command that are unlikely as an ordinary value.
_RUNS = (
    r"(?:/(?:usr/)?bin/)?(?:rm|sudo|doas|curl|wget|nc|ncat|(?:ba|da|z|k|fi)?sh|dd|mkfs\.\w+|shred|chmod|chown|ssh|scp"
    r"|unlink|truncate|crontab|systemctl|pkill|killall|eval|socat|telnet|mkfifo|nohup|setsid|busybox|reboot|shutdown"
    r"|poweroff|useradd|usermod|passwd|iptables|insmod|modprobe|osascript|powershell|pwsh"
    r"|(?:python[\d.]*|perl|ruby|node|php|lua|Rscript|julia)(?=\s+-\w*[ecrE]\b))"
)
_EMBEDDED = lazy_pattern(rf"(?:^|[!|;&({{`\n\[\"'])\s*({_RUNS}\s+[^\s].*)", re.DOTALL)
_IS_RUN = lazy_pattern(_RUNS)
_CLOSERS = {"{": "}", "(": ")", "`": "`", "[": "]", '"': '"', "'": "'"}
_HARMLESS_NAME = lazy_pattern(r"(?:lint|linter|fmt|format|formatter|check|checker|stats?|spec|tidy)$|^(?:lint|fmt)[-_]")
_HARMLESS_VERB = lazy_pattern(
    r"(?:check|lint|validate|verify|fmt|format|test|inspect|list|ls|show|info|status|version|help|describe|diff|explain)"
    r"(?:[-_:.]\w+)?"
)
_RUNS_BY_NAME = lazy_pattern(r"^--?(?:\w+[-_.])*(?:exec|execute|cmd|command|eval|hook|shell|script|plugin|load)(?:=|$)")


def read_embedded(words: tuple[str, ...], nested: NestedCode) -> None:
    """Add the commands in the words of a program to the code it runs."""
    texts, argvs = embedded_commands(words)
    nested.texts += [ShellText(text=text) for text in texts]
    nested.argvs += argvs


def embedded_commands(words: tuple[str, ...]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return shell texts and commands that the words of a program contain; none for programs that only show text."""
    program = program_name(words)
    if program in _SHOWS_TEXT or len(words) < 2:
        return [], []
    texts = [text for at in range(1, len(words)) if (text := _text_of(words, at))]
    return texts, _commands_of(words)


def _text_of(words: tuple[str, ...], at: int) -> str:
    word = words[at]
    option, equals, value = word.partition("=")
    if word[:1] == "-" and equals:
        return value if _COMMAND_OPTION.fullmatch(option) and " " in value else _embedded_in(value)
    if word[:1] != "-" and " " in word and _COMMAND_OPTION.fullmatch(words[at - 1]):
        return word
    return _embedded_in(word)


def _embedded_in(word: str) -> str:
    """Return the command inside a word such as `nop %sh{rm -rf src}`, without its closing delimiter."""
    found = _EMBEDDED.search(word) if " " in word else None
    if found is None:
        return ""
    opened = word[found.start() : found.start() + 1]
    return found[1].partition(_CLOSERS[opened])[0] if opened in _CLOSERS else found[1]


def _commands_of(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the commands among plain words, as in `mold -run rm -rf src`."""
    return [
        words[at:]
        for at in range(1, len(words) - 1)
        if _IS_RUN.fullmatch(words[at]) and words[at + 1][:1] == "-" and words[at - 1] != "-name"
    ][:1]


def looks_harmless(words: tuple[str, ...]) -> bool:
    """Return whether the name or subcommand of an unknown program suggests that it checks, formats or shows."""
    plain = [word for word in words[1:3] if word[:1] != "-"]
    if any("://" in word or " " in word or _RUNS_BY_NAME.search(word) for word in words[1:]):
        return False
    return bool(_HARMLESS_NAME.search(words[0]) or any(map(_HARMLESS_VERB.fullmatch, plain)))
