"""Large pastes and the history file."""

from pathlib import Path

from cli.repl.input import FilteredHistory, Pastes, open_history
from tooling.safety.secrets.redact import Redactor

KEY = "sk-proj-" + "a1B2" * 12


def test_a_short_paste_is_inserted_verbatim() -> None:
    assert Pastes().add("one\r\ntwo\rthree") == "one\ntwo\nthree"


def test_a_long_paste_is_a_placeholder_until_it_is_sent() -> None:
    pastes = Pastes()
    book, line = "line\n" * 20_000, "x" * 5000
    placeholders = [pastes.add(book), pastes.add(line)]
    assert placeholders == ["[paste 1: 20,001 lines]", "[paste 2: 5,000 characters]"]
    assert pastes.expand(f"compare {placeholders[0]} with {placeholders[1]}.") == f"compare {book} with {line}."
    pastes.clear()
    assert pastes.expand(placeholders[0]) == placeholders[0]


def stored_entries(history: FilteredHistory) -> list[str]:
    return list(history.load_history_strings())


def test_a_line_with_a_secret_is_not_saved(tmp_path: Path) -> None:
    redact = Redactor(("correct horse battery",)).redact
    history = open_history(tmp_path, redact)
    assert isinstance(history, FilteredHistory)
    for line in ("first", f"use {KEY}", "say correct horse battery", "last\nwith a second line"):
        history.append_string(line)
    assert stored_entries(history) == ["last\nwith a second line", "first"]
    assert f"use {KEY}" in history.get_strings()
    assert KEY not in (tmp_path / "history").read_text()


def test_the_history_is_private_and_limited_in_size(tmp_path: Path) -> None:
    history = open_history(tmp_path, lambda text: text)
    for number in range(3000):
        history.append_string(f"request {number} " + "x" * 500)
    again = open_history(tmp_path, lambda text: text)
    assert isinstance(again, FilteredHistory)
    assert (tmp_path / "history").stat().st_size < 700_000
    assert (tmp_path / "history").stat().st_mode & 0o077 == 0
    assert stored_entries(again)[0].startswith("request 2999 ")


def test_huge_entries_are_not_saved_and_invalid_bytes_are_replaced(tmp_path: Path) -> None:
    history = open_history(tmp_path, lambda text: text)
    assert isinstance(history, FilteredHistory)
    history.append_string("x" * 100_000)
    history.append_string("broken \udcff byte")
    assert stored_entries(history) == ["broken ? byte"]


def test_without_a_writable_folder_the_history_lives_in_memory(tmp_path: Path) -> None:
    history = open_history(tmp_path / "missing", lambda text: text)
    history.append_string("once")
    assert history.get_strings() == ["once"]


def test_a_text_begins_with_a_paste_until_it_is_typed_over() -> None:
    pastes = Pastes()
    pastes.mark_beginning("# Heading")
    assert pastes.begins("# Heading and more") and not pastes.begins("#note")
    pastes.clear()
    assert not pastes.begins("# Heading")
