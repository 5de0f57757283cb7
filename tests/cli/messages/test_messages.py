"""Messages in another language: what a user sees, and that the catalogue is complete."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from cli.command_table import COMMANDS
from cli.messages.translate import SHIPPED, STORED_WIDTHS, stored_help
from cli.messages.translator import Translator
from cli.typer_program import build_application
from tests.cli.messages import catalog
from tests.cli.messages.stored_help import render_help
from tests.cli.terminal_user import User

_NAMES = re.compile(r"\{\w+\}")
_CYRILLIC = re.compile(r"[а-яё]")
# What no user reads: patterns, styles, contents of files, words for other programs and for models.
_NOT_TRANSLATED = re.compile(
    r"\(\?P<|\^\(|bold |done: order paper|# Completion|(?:rules rm|tools call|exec) words$|Windlass runs tasks in a"
    r"|return after this many seconds|There is no step: |These steps wait |Only the lead |Wrong arguments: "
    r"|This call has no |The plugin has more |The files of the skill "
)


def test_the_catalogue_lists_what_the_program_says() -> None:
    expected = "run `python -m tests.cli.messages.catalog`"
    assert catalog.FILE.read_text("utf-8") == catalog.render(), expected


@pytest.mark.parametrize(
    "path", [path for path in SHIPPED.glob("*.toml") if path != catalog.FILE], ids=lambda p: p.stem
)
def test_a_translation_keeps_to_the_catalogue(path: Path) -> None:
    found = tomllib.loads(path.read_text("utf-8"))
    for texts, said, more in (
        (found.pop("page", {}), catalog.page_texts(), ()),
        (found, catalog.messages(), ("error", "hint", "warning", "note")),
    ):
        known = {text for texts in said.values() for text in texts} | set(more)
        for english, text in texts.items():
            assert english in known, f"the program does not say {english!r}"
            assert set(_NAMES.findall(text)) == set(_NAMES.findall(english)), english


def test_every_message_has_a_russian_text() -> None:
    russian = tomllib.loads((SHIPPED / "ru.toml").read_text("utf-8"))
    texts = {text for texts in catalog.messages().values() for text in texts}
    assert [text for text in sorted(texts) if text not in russian and not _NOT_TRANSLATED.match(text)] == []
    texts = {text for texts in catalog.page_texts().values() for text in texts}
    assert sorted(texts - russian["page"].keys()) == []


def test_every_help_page_is_in_russian() -> None:
    russian = tomllib.loads((SHIPPED / "ru.toml").read_text("utf-8"))
    translator = Translator(russian, russian.pop("page"))
    pages = [typer.main.get_command(build_application(entry.name)) for entry in COMMANDS]
    texts = {text for page in pages for text in help_texts(page)}
    assert len(texts) > 250
    assert [text for text in sorted(texts) if not _CYRILLIC.search(translator.translate(text))] == []


def help_texts(command: object) -> Iterator[str]:
    """Yield the texts that the help pages of a command and its subcommands show."""
    for part in (command, *getattr(command, "params", ())):
        yield from filter(None, (getattr(part, name, None) for name in ("help", "short_help", "epilog")))
    for inner in getattr(command, "commands", {}).values():
        yield from help_texts(inner)


def test_every_message_is_found_when_its_parts_are_filled_in() -> None:
    texts = {text for texts in catalog.messages().values() for text in texts}
    translator = Translator({text: f"T<{text}>" for text in texts})
    for text in texts:
        said = _NAMES.sub("x1", text)
        assert translator.translate(said).startswith("T<"), text


def test_values_and_prefixes_are_translated_too() -> None:
    translator = Translator({"error": "E", "cannot read {path}: {reason}": "{reason}! {path}", "it is gone": "weg"})
    assert translator.translate("error: cannot read a.txt: it is gone\nhint: other") == "E: weg! a.txt\nhint: other"


def test_words_of_the_page_are_not_taken_for_values_of_messages() -> None:
    translator = Translator({"cannot read {path}": "! {path}"}, {"Tasks": "T", "{count} steps": "s: {count}"})
    texts = ("Tasks", "{count} steps", "cannot read Tasks")
    assert [translator.translate_page(text) for text in texts] == ["T", "s: {count}", "! Tasks"]
    assert translator.translate("Tasks") == "Tasks"


@pytest.mark.slow
def test_a_user_sees_errors_and_help_in_her_language(user: User) -> None:
    ended = user.agent("run", "", AGENT_LANGUAGE="ru")
    assert "ошибка: " in ended.stderr
    assert "Выполнить задачу" in user.agent("--help", AGENT_LANGUAGE="ru").stdout


@pytest.mark.slow
def test_a_user_brings_a_language_of_her_own(user: User) -> None:
    folder = user.home / ".config" / "agent"
    (folder / "messages").mkdir(parents=True)
    (folder / "config.toml").write_text('language = "tlh"\n')
    (folder / "messages" / "tlh.toml").write_text('"error" = "Qagh"\n"the task is empty" = "chIm Qu"\n')
    assert user.agent("run", "").stderr.startswith("Qagh: chIm Qu\nhint: ")


@pytest.mark.slow
def test_programs_are_answered_in_english(user: User) -> None:
    words = ("run", "hi", "--model", "script:none", "--output-format", "json")
    russian, english = user.agent(*words, AGENT_LANGUAGE="ru").document, user.agent(*words).document
    assert russian.keys() == english.keys()
    assert [russian[name] for name in ("result", "subtype", "error")] == [
        english[name] for name in ("result", "subtype", "error")
    ]


@pytest.mark.slow
def test_a_language_nobody_wrote_is_said_and_the_message_is_shown(user: User) -> None:
    ended = user.agent("run", "", AGENT_LANGUAGE="xx")
    assert "there are no messages in 'xx'" in ended.stderr
    assert "error: the task is empty" in ended.stderr


@pytest.mark.parametrize("width", STORED_WIDTHS)
def test_the_stored_help_is_what_typer_renders(width: int) -> None:
    assert stored_help(width) == render_help(width), "run `python -m tests.cli.messages.stored_help`"


def test_only_the_usual_widths_are_stored() -> None:
    assert (stored_help(79), stored_help(200)) == ("", stored_help(100))
