"""Small aids at the prompt: what is pasted, what is kept of what was typed."""

from pathlib import Path

from cli.repl.input import FilteredHistory, LargePastes, open_history
from tooling.safety.secrets.redact import Redactor

KEY = "sk-proj-" + "a1B2" * 12


def test_a_short_paste_stands_in_the_prompt_as_it_is() -> None:
    assert LargePastes().add("one\r\ntwo\rthree") == "one\ntwo\nthree"


def test_a_long_paste_is_a_few_words_until_it_is_sent() -> None:
    pastes = LargePastes()
    book, line = "line\n" * 20_000, "x" * 5000
    signs = [pastes.add(book), pastes.add(line)]
    assert signs == ["[paste 1: 20,001 lines]", "[paste 2: 5,000 characters]"]
    assert pastes.expand(f"compare {signs[0]} with {signs[1]}.") == f"compare {book} with {line}."
    pastes.clear()
    assert pastes.expand(signs[0]) == signs[0]


def stored_entries(history: FilteredHistory) -> list[str]:
    return list(history.load_history_strings())


def test_a_line_with_a_secret_is_not_kept_on_disk(tmp_path: Path) -> None:
    redact = Redactor(("correct horse battery",)).redact
    history = open_history(tmp_path, redact)
    assert isinstance(history, FilteredHistory)
    for line in ("first", f"use {KEY}", "say correct horse battery", "last\nwith a second line"):
        history.append_string(line)
    assert stored_entries(history) == ["last\nwith a second line", "first"]
    assert f"use {KEY}" in history.get_strings()
    assert KEY not in (tmp_path / "history").read_text()


def test_the_history_is_for_this_user_alone_and_does_not_grow_for_ever(tmp_path: Path) -> None:
    history = open_history(tmp_path, lambda text: text)
    for number in range(3000):
        history.append_string(f"request {number} " + "x" * 500)
    again = open_history(tmp_path, lambda text: text)
    assert isinstance(again, FilteredHistory)
    assert (tmp_path / "history").stat().st_size < 700_000
    assert (tmp_path / "history").stat().st_mode & 0o077 == 0
    assert stored_entries(again)[0].startswith("request 2999 ")


def test_a_book_and_broken_bytes_do_no_harm(tmp_path: Path) -> None:
    history = open_history(tmp_path, lambda text: text)
    assert isinstance(history, FilteredHistory)
    history.append_string("x" * 100_000)
    history.append_string("broken \udcff byte")
    assert stored_entries(history) == ["broken ? byte"]


def test_a_folder_that_cannot_be_written_costs_only_the_memory_of_it(tmp_path: Path) -> None:
    history = open_history(tmp_path / "missing", lambda text: text)
    history.append_string("once")
    assert history.get_strings() == ["once"]
