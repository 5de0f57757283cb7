"""Extracting the content of a page as Markdown, with its metadata."""

import pytest

from tooling.web.html.extract import MAX_CHARS, decode_html, extract

PARAGRAPH = "A sentence that is long enough to count as something that a person wrote for others to read."


def markdown(body: str, *, url: str = "https://example.org/a/") -> str:
    return extract(f"<html><body><main>{body}</main></body></html>", url=url).markdown


def test_an_article_becomes_markdown_with_its_title() -> None:
    page = f"<html><head><title>On winches</title></head><body><article><p>{PARAGRAPH}</p><p>{PARAGRAPH[::-1]}</p>"
    found = extract(page, url="https://example.org/winches")
    assert (found.title, found.method) == ("On winches", "trafilatura")
    assert PARAGRAPH in found.markdown


def test_empty_pages_are_not_an_error() -> None:
    for nothing in ("", b"", " \n", "<html></html>", "<!-- -->", "<p></p>", "\x00"):
        assert extract(nothing).markdown == ""


def test_a_short_page_is_extracted_unchanged() -> None:
    found = extract("<p>Short.</p>")
    assert (found.markdown, found.method) == ("Short.", "html")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One <b>two</b> three<br>four</p>", "One **two** three\nfour"),
        ("<p><b> spaced </b>out</p>", "**spaced** out"),
        ("<p>See <a href='../b'>the other</a>.</p>", "See [the other](https://example.org/b)."),
        ("<p><a href='/b'>b</a> and <a href='/b'>b again</a></p>", "[b](https://example.org/b) and b again"),
        ("<p><a href='#x'>here</a> <a href='javascript:x()'>do</a> <a>bare</a></p>", "here do bare"),
        ("<p><a href='/b?utm_source=x&amp;id=1'>b</a></p>", "[b](https://example.org/b?id=1)"),
        ("<p><a href='https://e.org/x(y)'>b</a></p>", "[b](https://e.org/x%28y%29)"),
        ("<p><a href='https://e.org/x'>https://e.org/x</a></p>", "https://e.org/x"),
        ("<p><code>a `b` c</code> and <kbd>Ctrl</kbd></p>", "``a `b` c`` and `Ctrl`"),
        ("<p><del>old</del> H<sub>2</sub>O m<sup>2</sup> <q>so</q></p>", "~~old~~ H_2O m^2 “so”"),
        ("<p>Said<sup>[1]</sup> before.</p>", "Said before."),
        ("<img alt='a chart of all the winds'><img alt='logo'>", "[image: a chart of all the winds]"),
        ("<p><ruby>漢<rt>かん</rt></ruby></p>", "漢(かん)"),
        ("<h2>Head <a href='#h'>#</a></h2><p>x</p>", "## Head #\n\nx"),
        ("<h2><a href='/b'>Head</a></h2><p>x</p>", "## [Head](https://example.org/b)\n\nx"),
        ("<h2><a href='/a/#top'>Head</a></h2><p>x</p>", "## Head\n\nx"),
        ("<p><span>19:30</span><span>Old Mill</span></p>", "19:30 Old Mill"),
        ("<p><b>W</b>ord and <i>in</i><i>.</i></p>", "**W**ord and in."),
        ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "- a\n  - b\n- c"),
        ("<ul><li>a</li><ul><li>b</li></ul></ul>", "- a\n  - b"),
        ("<ol start='3'><li>a</li><li value='7'>b</li><li>c</li></ol>", "3. a\n7. b\n8. c"),
        ("<ul><li><h3>Head</h3><p>text</p></li></ul>", "- Head\n  text"),
        ("<dl><dt>a:</dt><dd>1</dd><dt>b</dt><dt>c</dt><dd>2</dd></dl>", "- **a**: 1\n- **b** / **c**: 2"),
        ("<dl><div><dt>a</dt><dd><ul><li>1</li></ul></dd></div></dl>", "- **a**:\n  - 1"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
        ("<pre>a\n  b</pre>", "```\na\n  b\n```"),
        ("<pre>a<br>b</pre>", "```\na\nb\n```"),
        ("<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"),
        ("<pre><code class='language-c++'>x;</code></pre>", "```c++\nx;\n```"),
        ("<details><summary>Why?</summary>Because.</details>", "**Why?**\n\nBecause."),
        ("<p>same</p><p>same</p>", "same"),
        ("<a href='/b'><h3>Title</h3><p>text</p></a>", "### [Title](https://example.org/b)\n\ntext"),
    ],
)
def test_every_element_has_its_markdown(html: str, text: str) -> None:
    assert markdown(html) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<tr><th>a<th>b<tr><td>1<td>2", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("<tr><td>a<td>b<tr><td>1<td>2", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("<tr><td>a<td>b<tr><td>1", "| a | b |\n|---|---|\n| 1 |  |"),
        (
            "<tr><th rowspan=2>a<th colspan=2>b<tr><th>c<th>d<tr><td>1<td>2<td>3",
            "| a | b c | b d |\n|---|---|---|\n| 1 | 2 | 3 |",
        ),
        ("<tr><td rowspan=2>a<td>1<tr><td>2<tr><td>b<td>3", "| a | 1 |\n|---|---|\n| a | 2 |\n| b | 3 |"),
        ("<tr><th colspan=2>All<tr><th>a<td>1<tr><th>b<td>2", "**All**\n\n| a | 1 |\n|---|---|\n| b | 2 |"),
        (
            "<caption>Cap</caption><tr><th>a<th>b<tr><td>x|y<td><b>z</b>",
            "**Cap**\n\n| a | b |\n|---|---|\n| x\\|y | z |",
        ),
        ("<tr><td>only</td></tr><tr><td>one column</td></tr>", "only\none column"),
        ("<tr><td colspan=99999999>a<td>b<tr><td>1<td rowspan=x>2", None),
    ],
)
def test_tables_become_markdown_rows(html: str, text: str | None) -> None:
    found = markdown(f"<table>{html}</table>")
    assert found == text if text is not None else len(found) < 1000


def test_structured_data_adds_only_what_the_text_lacks() -> None:
    data = '{"@type": "Product", "sku": "X-1", "offers": {"price": 12.5}, "image": "https://x.org/i.png", "name": "n"}'
    page = f'<script type="application/ld+json">{data}</script><script type="application/ld+json">{{broken</script>'
    found = extract(f"<html><body><main><p>{PARAGRAPH} It costs 12.5.</p></main>{page}</body></html>").markdown
    assert found.endswith("Structured data of the page:\n- sku: X-1")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("žluťoučký".encode(), "žluťoučký"),
        ("\ufeffžluť".encode(), "žluť"),
        ("žluť".encode("utf-16"), "žluť"),
        (b'<meta charset="iso-8859-2">' + "žluť".encode("iso-8859-2"), '<meta charset="iso-8859-2">žluť'),
        (b"<meta charset=koi8-r>" + "жёлтый".encode("koi8-r"), "<meta charset=koi8-r>жёлтый"),
        (b"<meta charset=nonsense>ok", "<meta charset=nonsense>ok"),
        (b"<meta charset=undefined>ok", "<meta charset=undefined>ok"),
        (b"caf\xe9", "café"),
        (b"<meta charset=utf-8>caf\xe9", "<meta charset=utf-8>café"),
    ],
)
def test_bytes_are_decoded_by_mark_meta_or_default(data: bytes, text: str) -> None:
    assert decode_html(data) == text


def test_inactive_tabs_stay_and_hidden_text_is_removed() -> None:
    page = "<div role=tabpanel style='display:none'><p>second tab</p></div><p style='display:none'>secret</p>"
    found = extract(f"<main><p>{PARAGRAPH}</p>{page}</main>")
    assert ("second tab" in found.markdown, "secret" in found.markdown, found.hidden_count) == (True, False, 1)


def test_a_download_button_stays_and_other_buttons_are_removed() -> None:
    buttons = "<a class='btn' href='/x.zip'>Download now</a> <a class='btn' href='/join'>Sign up</a>"
    found = markdown(f"<p>{PARAGRAPH}</p><p>{buttons}</p><p>{PARAGRAPH} Again.</p>")
    assert "[Download now](https://example.org/x.zip)" in found
    assert "Sign up" not in found


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 50_000 + "deep inside",
        "<ul><li>x" * 3_000,
        "<p>" + "<b>" * 3_000 + "bold",
        "<table><tr><td>" * 2_000 + "cell",
        "<div " + " ".join(f"a{number}=1" for number in range(20_000)) + ">many attributes</div>",
        "<div " + " ".join(f'a{number}=">"' for number in range(20_000)) + ">many attributes</div>",
        "<table>" + "<tr><td colspan=9999 rowspan=9999>x</td></tr>" * 500 + "</table>",
        "<!--" * 10_000 + "words",
        "\ud800 lone surrogate",
        "a\x00b",
        "<?xml version='1.0' encoding='utf-16'?><p>declared",
        "x" * (MAX_CHARS + 1),
        "<script>" + "x" * MAX_CHARS + "</script><p>the text</p>",
        "<html><frameset><frame src='http://['></frameset></html>",
        "<base href='http://['><a href='x'>y</a>",
    ],
    ids=lambda html: html[:20],
)
def test_extract_does_not_raise_on_hostile_pages(html: str) -> None:
    assert extract(html, url="https://example.org/").markdown is not None


def test_scripts_and_pictures_do_not_make_a_page_too_large() -> None:
    bulk = f"<script>{'x' * MAX_CHARS}</script><svg>{'y' * 1000}</svg><img src='data:{'z' * MAX_CHARS}'>"
    assert extract(f"<html><body>{bulk}<main><p>{PARAGRAPH}</p></main>").markdown == PARAGRAPH
