"""What is left of a page: its content as Markdown, with what is known about it."""

from tooling.web.extraction import extract

PARAGRAPH = "A sentence that is long enough to count as something that a person wrote for others to read."


def test_an_article_becomes_markdown_with_its_title() -> None:
    page = f"<html><head><title>On winches</title></head><body><article><p>{PARAGRAPH}</p><p>{PARAGRAPH[::-1]}</p>"
    found = extract(page, url="https://example.org/winches")
    assert found.title == "On winches"
    assert PARAGRAPH in found.markdown


def test_nothing_is_no_error() -> None:
    assert extract("").markdown == ""
    assert extract(b"").markdown == ""
