"""Kinds of nodes in the grammar of bash, and what they are to a reader."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
CONDITIONAL = frozenset({"if_statement", "elif_clause", "else_clause", "case_statement", "case_item"})
VALUES = frozenset(
    {"word", "string", "raw_string", "ansi_c_string", "concatenation", "simple_expansion", "expansion", "number"}
    | {
        "arithmetic_expansion",
        "extglob_pattern",
        "regex",
        "command_substitution",
        "process_substitution",
        "test_command",
    }
    | {"translated_string", "brace_expression"}
)
SILENT = frozenset({"comment", "heredoc_end", "heredoc_start", "heredoc_body", "variable_name", "file_descriptor"})


def last_command(body: "Node | None") -> "Node | None":
    """Return the command that ends a list, a pipeline or a negation."""
    while body is not None and body.type in ("list", "pipeline", "negated_command"):
        body = next((child for child in reversed(body.children) if child.is_named), None)
    return body if body is not None and body.type == "command" else None
