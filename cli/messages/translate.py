"""Translations of the program's messages.

The English text is the key, with its variable parts named: `"cannot read {path}" = "…"`. A message is looked up when it
is shown, so the rest of the program, logs, events and JSON documents are English in every language.
"""

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from agent.config.user_dirs import config_dir, config_file, os_environ
from agent.vocabulary.errors import AgentError

if TYPE_CHECKING:
    from cli.messages.translator import Translator

SHIPPED = Path(__file__).parent
ENGLISH = "en"
# Widths for which the help page is stored: that of a pipe, and the widest.
STORED_WIDTHS = (80, 100)


def translate(text: str) -> str:
    """Return a message in the user's language, or unchanged without a translation."""
    translator = _user_translator()
    return translator.translate(text) if translator else text


def translate_page(text: str) -> str:
    """Return a text of the page of `agent serve`, or a message it shows, in the user's language."""
    translator = _user_translator()
    return translator.translate_page(text) if translator else text


def translate_help(command: object) -> None:
    """Translate the help of a command, its options and its subcommands."""
    if _user_translator() is None:
        return
    for part in (command, *getattr(command, "params", ())):
        for name in ("help", "short_help", "epilog"):
            if text := getattr(part, name, None):
                setattr(part, name, translate(text))
    for inner in getattr(command, "commands", {}).values():
        translate_help(inner)


def stored_help(columns: int) -> str:
    """Return the help page as typer renders it, without importing typer; empty if it is not stored for this width."""
    width = min(columns, STORED_WIDTHS[-1])
    if width not in STORED_WIDTHS or _user_translator() is not None:
        return ""
    return (SHIPPED / f"help-{width}.txt").read_text("utf-8")


@cache
def _user_translator() -> "Translator | None":
    environ = os_environ()
    try:
        language = environ.get("AGENT_LANGUAGE") or _language_in(config_file(environ))
        if language in ("", ENGLISH):
            return None
        own = config_dir(environ) / "messages" / f"{language}.toml"
        messages, page = _read_catalogs(SHIPPED / own.name, own) if language.isalnum() else ({}, {})
    except (OSError, ValueError, AgentError) as error:
        print(f"warning: cannot read the messages of your language: {error}", file=sys.stderr)
        return None
    if not messages and not page:
        print(f"warning: there are no messages in {language!r}; expected them in {own}", file=sys.stderr)
        return None
    from cli.messages.translator import Translator

    return Translator(messages, page)


def _language_in(settings: Path) -> str:
    """Return the `language` in the settings file, which is parsed only if it contains the word."""
    text = settings.read_text("utf-8") if settings.is_file() else ""
    if "language" not in text:
        return ""
    import tomllib

    try:
        return str(tomllib.loads(text).get("language", ""))
    except tomllib.TOMLDecodeError:
        # Loading the settings reports their problems.
        return ""


def _read_catalogs(shipped: Path, own: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the messages and the texts of the page; the user's own file extends and overrides the shipped one."""
    import tomllib

    messages, page = dict[str, str](), dict[str, str]()
    for path in (shipped, own):
        found = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
        page |= found.pop("page", {})
        messages |= {english: str(text) for english, text in found.items()}
    return messages, page
