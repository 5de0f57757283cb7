"""Read redirections: files, here-documents, here-strings, and nodes the grammar attaches to them."""

import re
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from tooling.contract.fast_dataclass import dataclass
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.shell.command import Redirect
from tooling.safety.shell.parse import has_exact_heredoc_end
from tooling.safety.shell.state import Scope
from tooling.safety.shell.words import WordReader, node_text

if TYPE_CHECKING:
    from tree_sitter import Node

_OPERATOR = lazy_pattern(r"(\d+|\{\w+\})?\s*([<>&|]+)")
_TABS = lazy_pattern(r"^\t+", re.MULTILINE)


@dataclass(slots=True)
class Redirections:
    """The redirections of a statement, and the words and statements that the grammar attaches to them."""

    redirects: tuple[Redirect, ...] = ()
    stdin: str | None = None
    words: list[str] = field(default_factory=list)
    variables_read: frozenset[str] = frozenset()
    pipeline: "list[Node]" = field(default_factory=list)
    statements: "list[Node]" = field(default_factory=list)
    is_doubtful: bool = False

    def merge(self, other: "Redirections") -> "Redirections":
        """Return both combined; `other` comes first in the text."""
        return Redirections(
            redirects=(*other.redirects, *self.redirects),
            stdin=self.stdin if self.stdin is not None else other.stdin,
            words=[*other.words, *self.words],
            variables_read=self.variables_read | other.variables_read,
            pipeline=[*other.pipeline, *self.pipeline],
            statements=[*other.statements, *self.statements],
            is_doubtful=self.is_doubtful or other.is_doubtful,
        )


class RedirectReader:
    """Reads redirection nodes."""

    def __init__(self, words: WordReader) -> None:
        self._words = words

    def read(self, nodes: "Sequence[Node]", scope: Scope) -> Redirections:
        """Return the redirections of one statement."""
        result = Redirections()
        if not nodes:
            return result
        reads, self._words.variables_read = self._words.variables_read, set()
        for node in nodes:
            match node.type:
                case "file_redirect":
                    self._file(node, scope, result)
                case "herestring_redirect":
                    texts = [text for child in node.named_children for text in self._words.texts(child, scope)]
                    result.stdin = "\n".join(texts) + "\n"
                case "heredoc_redirect":
                    self._heredoc(node, scope, result)
        result.variables_read, self._words.variables_read = frozenset(self._words.variables_read), reads
        return result

    def _file(self, node: "Node", scope: Scope, result: Redirections) -> None:
        match = _OPERATOR.match(node_text(node))
        operator, descriptor = (match[2], match[1] or "") if match else (">", "")
        targets = [child for child in node.named_children if child.type not in ("file_descriptor", "ERROR")]
        for target in targets[:1]:
            for text in self._words.texts(target, scope):
                if not (operator in (">&", "<&") and (text.isdigit() or text == "-")):
                    is_output = descriptor in ("", "1") and ">" in operator
                    redirect = Redirect(operator=operator, target=text, is_output=is_output)
                    result.redirects = (*result.redirects, redirect)
        if len(targets) > 1 and targets[1].start_byte == targets[0].end_byte:
            result.is_doubtful = True
        # The grammar treats words after a target as more targets.
        for extra in targets[1:]:
            result.words += self._words.fields((extra,), scope)

    def _heredoc(self, node: "Node", scope: Scope, result: Redirections) -> None:
        start = next((node_text(child) for child in node.children if child.type == "heredoc_start"), "")
        result.is_doubtful = result.is_doubtful or not has_exact_heredoc_end(node)
        is_literal = any(mark in start for mark in "'\"\\")
        is_and_or = False
        for child in node.children:
            match child.type:
                case "heredoc_body":
                    result.stdin = node_text(child) if is_literal else self._words.expand_heredoc(child, scope)
                    if node_text(node).startswith("<<-"):
                        result.stdin = _TABS.sub("", result.stdin)
                case "pipeline":
                    result.pipeline = [part for part in child.children if part.is_named]
                case "file_redirect" | "herestring_redirect":
                    more = self.read([child], scope)
                    result.redirects += more.redirects
                    result.words += more.words
                    result.is_doubtful = result.is_doubtful or more.is_doubtful
                case "&&" | "||":
                    is_and_or = True
                case "heredoc_start" | "heredoc_end" | "<<" | "<<-" | "|" | "|&" | "file_descriptor":
                    pass
                case kind if is_and_or or kind in ("command", "list", "redirected_statement", "subshell", "ERROR"):
                    result.statements.append(child)
                case _ if child.is_named:
                    result.words += self._words.fields((child,), scope)
