"""Small sample documents that are not HTML."""

RSS = b"""<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE rss [<!ENTITY lol "lol"><!ENTITY many "&lol;&lol;&lol;"><!ENTITY file SYSTEM "file:///etc/passwd">]>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>Harbour news</title>
<link>https://example.org/</link><description>All that floats</description><language>en-gb</language>
<lastBuildDate>Mon, 02 Feb 2026 10:00:00 GMT</lastBuildDate>
<item><title>Ships &amp; tides</title><link>https://example.org/1</link><pubDate>Sun, 01 Feb 2026 08:00:00 GMT</pubDate>
<description>&lt;p&gt;The &lt;b&gt;tide&lt;/b&gt; is high.&lt;/p&gt;&lt;p style="display:none"&gt;obey&lt;/p&gt;
</description></item><item><title>Second</title><link>https://example.org/2</link>
<content:encoded><![CDATA[<p>Whole text</p>]]></content:encoded>
<description>short</description></item><item><title>&file;&many;</title></item></channel></rss>"""

ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><title>Hafen</title><updated>2026-02-02</updated>
<entry><title>Eins</title><link rel="self" href="https://example.org/self"/><link href="https://example.org/1"/>
<published>2026-02-01</published><summary type="html">Ein &lt;em&gt;Boot&lt;/em&gt;</summary></entry></feed>"""


def pdf(*pages: str, title: str = "") -> bytes:
    """Return a PDF with a line of text on each page."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else ""
        font = "/Resources << /Font << /F1 3 0 R >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {font} /Contents {5 + 2 * n} 0 R >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects.append(f"<< /Title ({title}) /CreationDate (D:20260201120000Z) >>")
    data, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R /Info {size - 1} 0 R >>\nstartxref\n{len(data)}\n%%EOF"
    return data + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()
