"""Styles that hide text are detected; other styles are not."""

import pytest

from tests.growth import assert_linear
from tooling.web.html.visibility import StyleSheet, hides, is_hidden

HIDING = """
display:none | DISPLAY : None !important | color:red;display:none | visibility:hidden | visibility: collapse
opacity:0 | opacity: 0.0 | opacity:.01 | opacity:0% | font-size:0 | font-size:0px | font-size: 0em | font-size:1px
position:absolute;left:-9999px | position:fixed;top:-1000px | text-indent:-9999px | margin-left:-5000px | left:-100em
clip:rect(0,0,0,0) | clip: rect(1px, 1px, 1px, 1px) | clip-path:inset(100%) | clip-path: inset(50%) | transform:scale(0)
transform:translateX(-9999px) | width:0;height:0 | height:1px;width:1px;overflow:hidden | height:0;overflow:hidden
max-height:0;overflow:hidden | color:transparent | color:rgba(0,0,0,0) | color:#fff;background:#ffffff | color:#ffffff00
color:white;background-color:#fff | content-visibility:hidden
"""

DISGUISED_HIDING = r"""
display:/*x*/none | display:none ! important | display:none!IMPORTANT | d\69splay:none | display:n\6fne
color:rgba(0 0 0 / 0) | color:rgb(0 0 0 / 0%) | color:rgba(0,0,0,0%) | color:hsla(0,0%,0%,0)
color:hsl(0 0% 0% / 0) | color:rgba(255,255,255,.01) | opacity:0e0 | opacity:0% | opacity:+0 | opacity:.01
font-size:calc(0px) | font-size:0.1em | font:0/0 a | font:0px serif | font: italic 0px/0 serif | font-size:0pt
font-size:0vw | zoom:0 | zoom:0.01 | scale:0 | scale:0 0 | transform:scale(0.001) | transform:scale(.0)
transform:scale3d(0,0,0) | transform:matrix(0,0,0,0,0,0) | transform:rotateX(90deg) | transform:rotatey(90deg)
filter:opacity(0) | filter:opacity(0%) | filter: blur(2px) opacity(0) | line-height:0;overflow:hidden
max-width:0;overflow:hidden | max-height:0px;overflow-y:hidden | height:0;overflow:hidden auto
width:0;overflow-x:clip | left:9999px | position:absolute;top:99999px | margin-left:9999px | text-indent:9999px
text-indent:-999em | text-indent:-9999in | translate:-9999px | translate:-200vw 0 | transform:translate(-200vw)
transform:translateY(-9999em) | transform:translate3d(-9999px,0,0) | inset:-9999px auto auto -9999px
inset:0 auto auto -9999px | position:absolute;left:-200vw | left:-100vw | right:-9999px | bottom:-99999px
margin:-9999px | margin:0 0 0 -9999px | clip-path:circle(0) | clip-path:circle(0px at 0 0) | clip-path:ellipse(0 0)
clip-path: polygon(0 0,0 0,0 0) | clip-path:inset(100% 0 0 0) | clip-path:inset(0 0 100% 0)
clip-path:inset(0 100% 0 0) | clip:rect(0 0 0 0) | clip:rect(1px 1px 1px 1px) | color:transparent
color:TRANSPARENT | -webkit-text-fill-color:transparent | color:#FFF;background:#FFFFFF
color:rgb(255,255,255);background:white | color:#fefefe;background:#fff
color:#ffffff;background-color:rgb(255, 255, 255) | visibility:HIDDEN | visibility: collapse
content-visibility:hidden | position:absolute;clip:rect(0,0,0,0) | width:0;height:0;overflow:hidden | font-size:1px
font-size:.5px;line-height:1px | display:none!important;display:block
"""

SIMILAR_BUT_SHOWING = """
display:block | display:flex | font:12px/1.5 serif | font:italic bold .8em/1.2 Arial | font-size:medium | opacity:1
opacity:1e0 | zoom:1 | scale:1 | scale:1.5 | transform:scale(1) | transform:rotate(45deg) | transform:rotateX(0)
filter:opacity(1) | filter:blur(0) | filter:opacity(100%) | line-height:0 | left:10px | left:500px
margin-left:200px | margin:0 auto | margin:-10px | margin:-15px 0 | text-indent:2em | translate:10px
translate:-50% -50% | transform:translate(-50%,-50%) | transform:translateX(-100%) | inset:0 | inset:0 auto auto 0
top:1200px | left:-10px | clip-path:circle(50%) | clip-path:inset(10%) | clip-path:polygon(0 0,100% 0,100% 100%)
color:rgba(0,0,0,.8) | color:rgb(0 0 0 / 80%) | color:#000 | color:white;background:black
color:#fff;background:#333 url(x) | color:rgb(255,255,255);background:rgb(0,0,0) | color:#eee;background:#222
overflow:hidden | overflow:hidden;height:10em | max-width:100%;overflow:hidden | max-height:none | width:0.5em
height:1px;background:red | content-visibility:auto | mask:none | clip:auto | /* display:none */color:red
content:"display:none" | background:url(data:x;display:none) | width:100%;height:auto | color:hsl(0 0% 0%)
color:hsla(0,0%,0%,1) | color:inherit | color:currentcolor;background:white | color:#fff;background:#fff url(x.png)
display:none;display:block
"""

SHOWING = """
color:red | display:block | visibility:visible | opacity:1 | opacity:0.9 | opacity:0.5 | font-size:12px | font-size:.8em
font-size:100% | left:-10px | margin-left:-20px | text-indent:2em | width:100% | height:1px | width:0.5em;height:20px
height:0 | overflow:hidden | overflow:hidden;height:200px | clip:auto | transform:scale(1.5)
transform:translate(-50%,-50%) | margin:0 auto
color:#fff;background:#000 | color:white | background:white | line-height:0 | padding:0;margin:0 | | nonsense | display
"""


def split_cases(text: str) -> list[str]:
    return [piece.strip() for line in text.strip().split("\n") for piece in line.split("|")]


@pytest.mark.parametrize("style", split_cases(HIDING) + split_cases(DISGUISED_HIDING))
def test_hiding_styles_are_detected(style: str) -> None:
    assert hides(style)


@pytest.mark.parametrize("style", split_cases(SHOWING) + split_cases(SIMILAR_BUT_SHOWING))
def test_other_styles_are_visible(style: str) -> None:
    assert not hides(style)


def test_attributes_hide_too() -> None:
    assert is_hidden("p", {"hidden": ""})
    assert is_hidden("input", {"type": "HIDDEN"})
    assert not is_hidden("input", {"type": "text"})
    assert not is_hidden("span", {"aria-hidden": "true"})


def test_simple_selectors_of_style_sheets_are_applied() -> None:
    sheet = StyleSheet()
    sheet.parse(
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
def test_hostile_style_sheets_do_not_raise(css: str) -> None:
    StyleSheet().parse(css)


@pytest.mark.parametrize("piece", ["a", "a:(", "a:'", 'a:"', "/*", "\\", ":", "a ", "((", "a:url('", "-"])
def test_hostile_styles_take_linear_time(piece: str) -> None:
    assert_linear(lambda size: hides(piece * size), 20_000)
