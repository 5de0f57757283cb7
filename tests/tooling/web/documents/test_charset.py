"""Pages in many charsets with correct, wrong and missing labels."""

import codecs

import pytest

from tooling.web.documents.content_type import decode_text

GERMAN = "Größe und Übermaß – schön, für Jürgen und Änne"
RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 5
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 5
CHINESE = "这是一个用来测试编码的句子,里面有很多汉字和标点符号。" * 5
HTML = "text/html"


@pytest.mark.parametrize(
    ("text", "codec", "header"),
    [
        (GERMAN, "utf-8", "text/html; charset=utf-8"),
        (GERMAN, "utf-8", 'text/html; Charset="UTF8"'),
        (GERMAN, "cp1252", "text/html; charset=iso-8859-1"),
        (GERMAN, "cp1252", "text/html; charset='windows-1252'"),
        (RUSSIAN, "koi8-r", "text/html; charset=koi8-r"),
        (RUSSIAN, "cp1251", "text/html;charset=windows-1251"),
        (JAPANESE, "shift_jis", "text/html; charset=Shift_JIS"),
        (JAPANESE, "euc_jp", "text/html; charset=EUC-JP"),
        (JAPANESE, "iso2022_jp", "text/html; charset=ISO-2022-JP"),
        (CHINESE, "gb18030", "text/html; charset=gb2312"),
        (CHINESE, "big5hkscs", "text/html; charset=big5"),
        (CHINESE, "utf-16-le", "text/html; charset=utf-16"),
    ],
)
def test_the_charset_of_the_header_is_used(text: str, codec: str, header: str) -> None:
    data = text.encode(codec, "ignore")
    assert decode_text(data, header) == data.decode(codec)


@pytest.mark.parametrize(
    ("text", "codec", "head"),
    [
        (GERMAN, "utf-8", '<meta charset="utf-8">'),
        (RUSSIAN, "cp1251", '<META http-equiv="Content-Type" content="text/html; charset=windows-1251">'),
        (JAPANESE, "euc_jp", "<html><head><title>x</title><meta charset=euc-jp>"),
        (RUSSIAN, "koi8-r", '<?xml version="1.0" encoding="koi8-r"?>'),
        (GERMAN, "utf-8", '<meta charset="utf-16">'),
    ],
)
def test_the_charset_of_the_page_is_used_next(text: str, codec: str, head: str) -> None:
    page = f"{head}<p>{text}</p>"
    assert decode_text(page.encode(codec), HTML) == page


def test_a_byte_order_mark_overrides_everything() -> None:
    for bom, codec in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        assert decode_text(bom + GERMAN.encode(codec), "text/html; charset=koi8-r") == GERMAN


@pytest.mark.parametrize(
    ("codec", "header"),
    [
        ("utf-8", "text/html; charset=iso-8859-1"),
        ("utf-8", "text/html; charset=us-ascii"),
        ("utf-8", "text/html; charset=nonsense"),
        ("utf-8", "text/html; charset="),
        ("utf-8", "text/html"),
        ("utf-8", ""),
        ("cp1252", "text/html; charset=utf-8"),
        ("cp1252", "text/html"),
    ],
)
def test_a_wrong_label_does_not_garble_the_text(codec: str, header: str) -> None:
    assert decode_text(GERMAN.encode(codec), header) == GERMAN


def test_the_page_wins_if_the_header_is_wrong() -> None:
    page = f'<meta charset="windows-1251">{RUSSIAN}'
    assert decode_text(page.encode("cp1251"), "text/html; charset=utf-8") == page


def test_an_unlabelled_charset_is_detected() -> None:
    assert decode_text(RUSSIAN.encode("cp1251")) == RUSSIAN


def test_a_page_truncated_within_a_character_keeps_the_rest() -> None:
    data = GERMAN.encode()
    end = data.index("ß".encode()) + 1
    assert decode_text(data[:end], "text/html; charset=utf-8", is_truncated=True) == GERMAN[: GERMAN.index("ß")]


@pytest.mark.parametrize(
    "label", ["zlib_codec", "rot13", "unicode_escape", "utf-7", "idna", "punycode", "hex", "base64"]
)
def test_only_text_codecs_are_used(label: str) -> None:
    assert decode_text(b"+ADw-script", f"text/html; charset={label}") == "+ADw-script"


@pytest.mark.parametrize("data", [b"", b"\xff", b"\xff\xfe", b"\x80\x81\x8d\x9d", bytes(range(256)) * 10])
def test_invalid_bytes_never_raise(data: bytes) -> None:
    assert isinstance(decode_text(data, "text/html; charset=utf-8"), str)
