"""What a browser hides is known as hidden, and what it shows is not."""

import pytest

from tooling.web.hiding import StyleSheet, hides, is_hidden

HIDING = """
display:none | DISPLAY : None !important | color:red;display:none | visibility:hidden | visibility: collapse
opacity:0 | opacity: 0.0 | opacity:.01 | opacity:0% | font-size:0 | font-size:0px | font-size: 0em | font-size:1px
position:absolute;left:-9999px | position:fixed;top:-1000px | text-indent:-9999px | margin-left:-5000px | left:-100em
clip:rect(0,0,0,0) | clip: rect(1px, 1px, 1px, 1px) | clip-path:inset(100%) | clip-path: inset(50%) | transform:scale(0)
transform:translateX(-9999px) | width:0;height:0 | height:1px;width:1px;overflow:hidden | height:0;overflow:hidden
max-height:0;overflow:hidden | color:transparent | color:rgba(0,0,0,0) | color:#fff;background:#ffffff | color:#ffffff00
color:white;background-color:#fff | content-visibility:hidden
"""

SHOWING = """
color:red | display:block | visibility:visible | opacity:1 | opacity:0.9 | opacity:0.5 | font-size:12px | font-size:.8em
font-size:100% | left:-10px | margin-left:-20px | text-indent:2em | width:100% | height:1px | width:0.5em;height:20px
height:0 | overflow:hidden | overflow:hidden;height:200px | clip:auto | transform:scale(1.5)
transform:translate(-50%,-50%) | margin:0 auto
color:#fff;background:#000 | color:white | background:white | line-height:0 | padding:0;margin:0 | | nonsense | display
"""


def pieces(text: str) -> list[str]:
    return [piece.strip() for line in text.strip().split("\n") for piece in line.split("|")]


@pytest.mark.parametrize("style", pieces(HIDING))
def test_styles_that_hide(style: str) -> None:
    assert hides(style)


@pytest.mark.parametrize("style", pieces(SHOWING))
def test_styles_that_show(style: str) -> None:
    assert not hides(style)


def test_attributes_hide_too() -> None:
    assert is_hidden("p", {"hidden": ""})
    assert is_hidden("input", {"type": "HIDDEN"})
    assert not is_hidden("input", {"type": "text"})
    assert not is_hidden("span", {"aria-hidden": "true"})


def test_the_page_s_own_styles_count_as_far_as_they_are_simple() -> None:
    sheet = StyleSheet()
    sheet.read(
        """
        /* .commented { display: none } */ @import url("x.css"); @charset "utf-8";
        .gone, p.small, #note { display: none } div > .deep { display: none } .fine { color: red }
        @media print { .printed { display: none } .other { color: red } } aside { visibility: hidden }
        .last { opacity: 0 }
        """
    )
    shown = [("p", "commented"), ("p", "deep"), ("p", "fine"), ("p", "printed"), ("div", "small"), ("div", "")]
    hidden = [("p", "a gone b"), ("div", "gone"), ("p", "small"), ("aside", ""), ("i", "last")]
    assert [is_hidden(tag, {"class": name}, sheet) for tag, name in shown] == [False] * len(shown)
    assert [is_hidden(tag, {"class": name}, sheet) for tag, name in hidden] == [True] * len(hidden)
    assert is_hidden("p", {"id": "note"}, sheet)
    assert not is_hidden("p", {"id": "gone"}, sheet)


@pytest.mark.parametrize(
    "css", ["{" * 50_000, "}" * 50_000, "@" * 50_000, ".a{" * 20_000, "/*" * 50_000, "@media{" * 9000]
)
def test_no_style_sheet_takes_long(css: str) -> None:
    StyleSheet().read(css)
