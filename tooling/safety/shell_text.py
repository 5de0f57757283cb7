"""Shell text taken apart into simple commands: a first approximation that keeps quotes, nesting and here-documents.

What is inside substitutions comes out as commands of its own. Doubt raises Unparsable, which asks.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

MAX_DEPTH = 8

_OPERATOR = re.compile(r"\|\||&&|;;&?|;&|\|&|&>>|&>|<<<|<<-|<<|<>|<&|>&|>>|>\||[;&|<>()\n]")
_PLAIN = re.compile(r"[^\s\\'\"$`;&|<>()]+")
_EXPANSION = re.compile(r"\$(?:\{[^}`]*\}|\w+|[@*#?$!-]|)")
_NUMBER = re.compile(r"\d+(?=[<>])")


class Unparsable(ValueError):
    """Text whose meaning cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """Where input comes from or output goes to."""

    operator: str
    target: str

    @property
    def writes(self) -> bool:
        """Say whether the target is written."""
        return ">" in self.operator


@dataclass(slots=True)
class SimpleCommand:
    """One program call as the shell would make it; `script` is text it is fed by a here-document."""

    words: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    script: str = ""
    is_piped: bool = False

    @property
    def is_empty(self) -> bool:
        """Say whether there is nothing to judge."""
        return not self.words and not self.redirects


def simple_commands(text: str, depth: int = 0) -> list[SimpleCommand]:
    """Return every simple command in a shell text, those of substitutions included."""
    if depth > MAX_DEPTH:
        raise Unparsable("it is nested too deeply")
    lexer = _Lexer(text)
    lexer.run()
    nested = [command for inner in lexer.nested for command in simple_commands(inner, depth + 1)]
    return [command for command in lexer.commands if not command.is_empty] + nested


def program_name(words: Sequence[str]) -> str:
    """Return the name of the program a command runs, without its folder."""
    return PurePath(words[0]).name or words[0] if words else ""


class _Lexer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._heredocs: list[tuple[str, bool, bool, SimpleCommand]] = []
        self.commands: list[SimpleCommand] = [SimpleCommand()]
        self.nested: list[str] = []

    def run(self) -> None:
        """Walk the text once, from left to right."""
        while self._at < len(self._text):
            rest = self._text[self._at]
            if rest in " \t":
                self._at += 1
            elif rest == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            elif self._text.startswith("\\\n", self._at):
                self._at += 2
            elif operator := (_OPERATOR.match(self._text, self._at) or None):
                self._at = operator.end()
                self._operator(operator[0])
            else:
                self._argument()
        if self._heredocs:
            raise Unparsable("a here-document has no end")

    def _argument(self) -> None:
        number = _NUMBER.match(self._text, self._at)
        if number:
            # The descriptor of a redirection, not an argument.
            self._at = number.end()
        else:
            self.commands[-1].words.append(self._word()[0])

    def _operator(self, operator: str) -> None:
        if operator in ("<<", "<<-"):
            delimiter, quoted = self._after_blanks()
            self._heredocs.append((delimiter, quoted, operator == "<<-", self.commands[-1]))
        elif operator == "<<<":
            self.commands[-1].script += self._after_blanks()[0] + "\n"
        elif operator[-1] in "<>" or operator in ("<&", ">&", ">|"):
            self._redirect(operator)
        else:
            self.commands.append(SimpleCommand(is_piped=operator in ("|", "|&")))
            if operator == "\n":
                self._skip_heredocs()

    def _redirect(self, operator: str) -> None:
        if self._text.startswith("(", self._at):
            # Process substitution: what is in it runs as commands of its own.
            self._at += 1
            self.nested.append(self._until_closed())
            self.commands[-1].words.append("/dev/fd/63")
            return
        target = self._after_blanks()[0]
        if not (operator in ("<&", ">&") and (target.isdigit() or target == "-")):
            self.commands[-1].redirects.append(Redirect(operator=operator, target=target))

    def _after_blanks(self) -> tuple[str, bool]:
        while self._text.startswith((" ", "\t"), self._at):
            self._at += 1
        word, quoted = self._word()
        if not word and not quoted:
            raise Unparsable("a redirection has no target")
        return word, quoted

    def _word(self) -> tuple[str, bool]:
        """Return the next word without its quotes, and whether any part of it was quoted."""
        pieces: list[str] = []
        quoted = False
        while self._at < len(self._text):
            char = self._text[self._at]
            if plain := _PLAIN.match(self._text, self._at):
                self._at = plain.end()
                pieces.append(plain[0])
            elif char == "\\":
                pieces.append(self._text[self._at + 1 : self._at + 2].replace("\n", ""))
                self._at += 2
                quoted = True
            elif char == "'":
                pieces.append(self._single())
                quoted = True
            elif char == '"':
                pieces.append(self._double())
                quoted = True
            elif char in "$`":
                pieces.append(self._expansion())
            else:
                break
        return "".join(pieces), quoted

    def _single(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise Unparsable("a quote is not closed")
        piece, self._at = self._text[self._at + 1 : end], end + 1
        return piece

    def _double(self) -> str:
        pieces: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"':
                self._at += 1
                return "".join(pieces)
            if char == "\\":
                escaped = self._text[self._at + 1 : self._at + 2]
                pieces.append(escaped if escaped in '"\\$`' else f"\\{escaped}" if escaped != "\n" else "")
                self._at += 2
            elif char in "$`":
                pieces.append(self._expansion())
            else:
                pieces.append(char)
                self._at += 1
        raise Unparsable("a quote is not closed")

    def _expansion(self) -> str:
        if self._text[self._at] == "`":
            end = self._text.find("`", self._at + 1)
            if end < 0:
                raise Unparsable("a backquote is not closed")
            self.nested.append(self._text[self._at + 1 : end])
            self._at = end + 1
            return "$()"
        if self._text.startswith("$(", self._at):
            self._at += 2
            self.nested.append(self._until_closed())
            return "$()"
        if self._text.startswith("$'", self._at):
            raise Unparsable("it uses $'…' quoting")
        found = _EXPANSION.match(self._text, self._at)
        piece = found[0] if found else "$"
        self._at += len(piece)
        if "$(" in piece[1:] or (piece == "$" and self._text.startswith("{", self._at)):
            raise Unparsable("an expansion is nested")
        return piece

    def _until_closed(self) -> str:
        """Return the text up to the parenthesis that closes the one just passed."""
        start, depth = self._at, 1
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "\\":
                self._at += 2
                continue
            if char == "'":
                self._single()
                continue
            if char == '"':
                self._double()
                continue
            depth += {"(": 1, ")": -1}.get(char, 0)
            self._at += 1
            if depth == 0:
                return self._text[start : self._at - 1]
        raise Unparsable("a parenthesis is not closed")

    def _skip_heredocs(self) -> None:
        for delimiter, quoted, strips_tabs, command in self._heredocs:
            lines: list[str] = []
            while True:
                if self._at >= len(self._text):
                    raise Unparsable("a here-document has no end")
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = min(end + 1, len(self._text))
                if (line.lstrip("\t") if strips_tabs else line) == delimiter:
                    break
                lines.append(line)
            command.script += "\n".join(lines)
            if not quoted:
                self._nested_in_data("\n".join(lines))
        self._heredocs.clear()

    def _nested_in_data(self, data: str) -> None:
        """Find the substitutions in here-document data; quotes mean nothing there."""
        for found in re.finditer(r"(?<!\\)(?:\$\(|`)", data):
            inner = _Lexer(data)
            inner._at = found.start()
            try:
                inner._expansion()
            except Unparsable:
                raise Unparsable("a substitution in a here-document is not closed") from None
            self.nested += inner.nested
