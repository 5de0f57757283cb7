"""Detecting the kind of a response, even if the server labels it wrongly."""

import pytest

from tooling.web.documents.content_type import ContentKind, detect_kind

PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


@pytest.mark.parametrize(
    ("header", "body", "url", "kind"),
    [
        ("text/html", b"<p>x", "", "html"),
        ("TEXT/HTML; charset=utf-8", b"words", "", "html"),
        ("application/xhtml+xml", b"<?xml version='1.0'?><html>", "", "html"),
        ("", b"  <!DOCTYPE html><p>", "", "html"),
        ("text/plain", b"<!doctype HTML><p>", "", "html"),
        ("application/octet-stream", b"<html><p>", "", "html"),
        ("application/json", b"<!doctype html><h1>502", "", "html"),
        ("text/plain", b"<p> is how a paragraph begins", "", "text"),
        ("text/plain", b"# Title", "https://example.org/README.md?x=1", "markdown"),
        ("text/markdown", b"# Title", "", "markdown"),
        ("", b"# Title", "https://example.org/a.MD", "markdown"),
        ("text/x-python", b"import os", "https://example.org/a.md", "text"),
        ("application/json", b"{}", "", "json"),
        ("application/ld+json; charset=utf-8", b"{}", "", "json"),
        ("application/rss+xml", b"<rss>", "", "feed"),
        ("application/xml", b"<?xml version='1.0'?>\n<rss version='2.0'>", "", "feed"),
        ("text/xml", b"<feed xmlns='http://www.w3.org/2005/Atom'>", "", "feed"),
        ("text/html", b"<?xml version='1.0'?><rss>", "", "html"),
        ("", b"<?xml version='1.0'?><rdf:RDF >", "", "feed"),
        ("application/xml", b"<?xml version='1.0'?><urlset>", "", "xml"),
        ("image/svg+xml", b"<svg>", "", "xml"),
        ("application/pdf", PDF, "", "pdf"),
        ("application/octet-stream", PDF, "", "pdf"),
        ("text/html", PDF, "", "pdf"),
        ("application/pdf", b"<html>login", "", "pdf"),
        ("image/png", PNG, "", "other"),
        ("text/html", PNG, "", "other"),
        ("text/plain", b"a\0b", "", "other"),
        ("text/plain", b"\xff\xfea\0b\0", "", "text"),
        ("video/mp4", b"words", "", "other"),
        ("application/zip", b"PK\x03\x04", "", "other"),
        ("application/yaml", b"a: 1", "", "text"),
        ("text/csv", b"a,b", "", "text"),
        ("", b"", "", "text"),
        ("application/x-whatever", b"words", "", "other"),
    ],
)
def test_the_kind_is_detected_from_bytes_header_and_name(header: str, body: bytes, url: str, kind: ContentKind) -> None:
    assert detect_kind(header, body, url) == kind
