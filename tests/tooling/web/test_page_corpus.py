"""The page corpus: facts are extracted, boilerplate is removed."""

import pytest

from tests.tooling.web.sample_pages import SamplePage, load_pages, normalize
from tooling.web.html.extract import extract

PAGES = load_pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_facts_are_extracted_and_boilerplate_is_removed(page: SamplePage) -> None:
    found = extract(page.html, url=page.url)
    assert [fact for fact in page.keep if fact not in page.kept_facts(found.markdown)] == []
    assert page.remaining_boilerplate(found.markdown) == []
    assert [shape for shape in page.shape if shape not in found.markdown] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_title_date_and_language_are_extracted(page: SamplePage) -> None:
    found = extract(page.html, url=page.url)
    assert (found.title, found.language) == (page.title, page.language)
    assert not page.date or found.date == page.date


def test_the_corpus_is_large_and_has_no_duplicate_facts() -> None:
    assert len(PAGES) >= 20
    assert sum(len(page.keep) for page in PAGES) > 400
    for page in PAGES:
        # A duplicate fact would only inflate the score.
        assert len({normalize(fact) for fact in page.keep}) == len(page.keep), page.name


def test_hidden_text_is_counted() -> None:
    page = next(page for page in PAGES if page.name == "hidden-text")
    assert extract(page.html, url=page.url).hidden_count == 24
    plain = next(page for page in PAGES if page.name == "changelog")
    assert extract(plain.html).hidden_count == 0


@pytest.mark.parametrize("count", [2_000, 60_000])
def test_a_huge_page_keeps_its_first_and_last_facts(count: int) -> None:
    paragraphs = "".join(f"<p>Fact {number} of {count}: value {number * 7919 % 10007}.</p>" for number in range(count))
    page = f"<html lang=en><title>Many facts</title><body><nav><a href=/>Home</a></nav><main>{paragraphs}</main></body>"
    found = extract(page)
    assert (found.title, found.language) == ("Many facts", "en")
    for number in (0, count // 2, count - 1):
        assert f"Fact {number} of {count}: value {number * 7919 % 10007}." in found.markdown
