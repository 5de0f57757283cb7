"""Which URLs, hosts and addresses requests may go to, and which are refused."""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooling.web.addresses.public_ranges import why_not_public
from tooling.web.addresses.url_check import (
    AddressRefused,
    HostUnknown,
    Target,
    check_host,
    is_local_url,
    parse_url,
    resolve_public,
)

PUBLIC_URLS = {
    "http://example.com": "http://example.com/",
    "https://example.com/": "https://example.com/",
    "HTTPS://EXAMPLE.com/Path": "https://example.com/Path",
    "https://example.com.": "https://example.com/",
    "https://example.com:443/a": "https://example.com/a",
    "http://example.com:443/a": "http://example.com:443/a",
    "https://example.com:8443/a": "https://example.com:8443/a",
    "http://example.com:/a": "http://example.com/a",
    "https://example.com/a/../b?x=1&y=2#part": "https://example.com/a/../b?x=1&y=2",
    "https://example.com?q=1": "https://example.com/?q=1",
    "https://example.com#top": "https://example.com/",
    "https://example.com#@127.0.0.1/": "https://example.com/",
    "https://example.com/?next=http://127.0.0.1/": "https://example.com/?next=http://127.0.0.1/",
    "https://example.com/@user": "https://example.com/@user",
    "https://example.com/a%5Cb%20c": "https://example.com/a%5Cb%20c",
    "https://example.com/a|b{c}": "https://example.com/a|b{c}",
    "https://de.wikipedia.org/wiki/Köln": "https://de.wikipedia.org/wiki/K%C3%B6ln",
    "https://bücher.example/": "https://xn--bcher-kva.example/",
    "https://BÜCHER.example/": "https://xn--bcher-kva.example/",
    "https://bu\u0308cher.example/": "https://xn--bcher-kva.example/",
    "https://xn--bcher-kva.example/": "https://xn--bcher-kva.example/",
    "https://straße.de/": "https://xn--strae-oqa.de/",
    "https://例え.テスト/": "https://xn--r8jz45g.xn--zckzah/",
    "https://пример.рф/": "https://xn--e1afmkfd.xn--p1ai/",
    "https://ｅｘａｍｐｌｅ．ｃｏｍ/": "https://example.com/",
    "https://example。com/": "https://example.com/",
    "https://r3---sn-4g5e6.googlevideo.com/": "https://r3---sn-4g5e6.googlevideo.com/",
    "https://my_bucket.s3.amazonaws.com/": "https://my_bucket.s3.amazonaws.com/",
    "https://8.8.8.8.example.com/": "https://8.8.8.8.example.com/",
    "https://123.com/": "https://123.com/",
    "https://0xfun.net/": "https://0xfun.net/",
    "https://internal.example.com/": "https://internal.example.com/",
    "https://localhost.example.com/": "https://localhost.example.com/",
    "https://8.8.8.8/": "https://8.8.8.8/",
    "http://1.1.1.1:8080/x": "http://1.1.1.1:8080/x",
    "https://[2606:4700:4700::1111]/": "https://[2606:4700:4700::1111]/",
    "https://[2606:4700:4700:0:0:0:0:1111]:8443/": "https://[2606:4700:4700::1111]:8443/",
    "https://[::ffff:8.8.8.8]/": "https://[::ffff:808:808]/",
}

REFUSED_URLS = """
    ftp://example.com/ file:///etc/passwd gopher://example.com/ data:text/html,x javascript:alert(1) ws://example.com/
    dict://example.com/ example.com //example.com/ http:example.com http:/example.com http:///example.com http:// https://
    http://@example.com/ http://user@example.com/ http://user:pass@example.com/ http://example.com@127.0.0.1/
    http://127.0.0.1:80@example.com/ http://example.com%40127.0.0.1/ http://example.com:80@evil.org/
    http://example.com\\@127.0.0.1/ http:\\\\example.com/ http://example.com/a\\b
    http://127.0.0.1/ http://127.0.0.1:8080/ http://127.1/ http://127.0.1/ http://2130706433/ http://0x7f000001/
    http://0x7f.0.0.1/ http://0177.0.0.1/ http://017700000001/ http://127.0.0.1./ http://127.000.000.001/
    http://127.0.0.0x1/ http://0/ http://0.0.0.0/ http://0x/ http://1.2.3/ http://1.2.3.4.5/ http://example.1/
    http://256.256.256.256/ http://3232235777/ http://8.8.8.08/ http://0x8.8.8.8/ http://８.８.８.８/ http://127。0。0。1/
    http://①②⑦.⓪.⓪.①/ http://１２７.1/ http://127%2e0%2e0%2e1/ http://%31%32%37.0.0.1/ http://exa%6dple.com/
    http://10.0.0.1/ http://172.16.0.1/ http://172.31.255.255/ http://192.168.1.1/ http://169.254.169.254/latest/meta-data/
    http://100.64.0.1/ http://100.100.100.200/ http://192.0.0.192/ http://168.63.129.16/ http://198.18.0.1/
    http://224.0.0.1/ http://240.0.0.1/ http://255.255.255.255/ http://192.0.2.1/ http://198.51.100.7/ http://203.0.113.9/
    http://[::]/ http://[::1]/ http://[0:0:0:0:0:0:0:1]/ http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/
    http://[::ffff:a9fe:a9fe]/ http://[::127.0.0.1]/ http://[::ffff:0:127.0.0.1]/ http://[64:ff9b::127.0.0.1]/
    http://[64:ff9b::a9fe:a9fe]/ http://[64:ff9b:1::8.8.8.8]/ http://[2002:7f00:1::]/ http://[2002:a9fe:a9fe::1]/
    http://[2001:0:808:808:0:0:80ff:fffe]/ http://[fc00::1]/ http://[fd00:ec2::254]/ http://[fe80::1]/ http://[fec0::1]/
    http://[fe80::1%25eth0]/ http://[fe80::1%eth0]/ http://[ff02::1]/ http://[2001:db8::1]/ http://[100::1]/ http://[5f00::1]/
    http://[3fff::1]/ http://[4000::1]/ http://[2001:2::1]/ http://[2606:4700::5efe:10.0.0.1]/ http://[v1.x]/ http://[::1
    http://::1/ http://[::1]x/ http://[::1]:x/ http://[8.8.8.8]/ http://[]/ http://[example.com]/
    http://localhost/ http://LOCALHOST:80/ http://localhost./ http://a.localhost/ http://ⓛocalhost/ http://printer.local/
    http://metadata.google.internal/ http://METADATA.google.internal./ http://metadata/ http://metadata.goog/
    http://instance-data.ec2.internal/ http://host.docker.internal/ http://kubernetes.default.svc/ http://router.home.arpa/
    http://redis.default.svc/ http://smtp.mail/ http://nas.lan/ http://intranet/ http://x.corp/ http://abc.onion/ http://localhost.localdomain/
    http://example.com:0/ http://example.com:65536/ http://example.com:99999/ http://example.com:-1/ http://example.com:+80/
    http://example.com:8_0/ http://example.com:８０/ http://example.com:080/ http://example.com:80:80/ http://example.com:22/
    http://example.com:25/ http://example.com:6667/ http://example..com/ http://.example.com/ http://./ http://../
    http://-example.com/ http://example-.com/ http://exam!ple.com/ http://exam,ple.com/ http://*.example.com/
    http://example.com;x/ http://℀.example.com/ http://example.com／.evil.org/ http://example.com＃.evil.org/
    http://exam\u00adple.com/ http://exam\u200bple.com/ http://exam\u202eple.com/ http://☃.example.com/ http://😀.example.com/
    http://xn--.example.com/ http://xn--a.example.com/ http://xn--99999999.example.com/ http://xn--abc-.example.com/
    http://\u0301a.example.com/ http://a\u2024b.example.com:x/ http://$(id).example.com/ http://`id`.example.com/
"""

# More refused URLs, one per line.
LISTED_URLS = (Path(__file__).parents[3] / "data" / "web" / "refused.txt").read_text().split("\n")[:-1]

CONTROL_URLS = (
    "http://example.com/a b",
    " http://example.com/",
    "http://example.com/\n",
    "http://exam\tple.com/",
    "http://example.com/\r\nX-Injected: 1",
    "http://example.com\x00.evil.org/",
    "http://example.com/\x7f",
    "http://example.com/\x85",
    "http://example.com/\u00a0",
    "http://example.com/\u2028",
    "http://exam\u3000ple.com/",
    "http://example.com/\ud800",
    "java\nscript://example.com/",
    "",
    " ",
    "http://" + "a" * 64 + ".com/",
    "http://" + "a." * 127 + "com/",
    "http://example.com/" + "a" * 8192,
)

PUBLIC_ADDRESSES = """
    1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
    168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0
    192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 203.0.112.255 203.0.114.0 223.255.255.255
    2606:4700:4700::1111 2001:4860:4860::8888 2a00:1450:4001:81b::200e 2620:fe::fe 2400:cb00:2048:1::c629:d7a2
    ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1 2001:0:808:808:0:0:f7f7:f7f7 2606:4700::5efe:8.8.8.8 2001:200::1
"""

OTHER_ADDRESSES = """
    0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1 127.255.255.255 168.63.129.16
    169.254.0.0 169.254.169.254 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.255 192.0.2.255 192.88.99.1 192.168.0.0
    192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.255 203.0.113.0 224.0.0.0 239.255.255.255 240.0.0.0
    255.255.255.254 255.255.255.255 :: ::1 ::2 ::7f00:1 ::10.1.2.3 ::ffff:10.0.0.1 ::ffff:0.0.0.0
    ::ffff:0:192.168.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b:1::1 64:ff9b:2::1 100::1 100:0:0:1::1
    200::1 2001::1 2001:0:7f00:1:0:0:f7f7:f7f7 2001:0:808:808:0:0:f5ff:fffe 2001:10::1 2001:20::1 2001:db8:ffff::1
    2002:a00:1::1 2002:c0a8:101::1 2606:4700::200:5efe:127.0.0.1 3ffe::1 3fff:fff::1 4000::1 5f00::1 8000::1 fc00::1
    2002:808:808::5efe:10.0.0.1 2002:808:808::200:5efe:169.254.169.254 64:ff9b::100.100.100.200 ::ffff:168.63.129.16
    fdff::1 fe80::1 febf::1 fec0::1 feff::1 ff00::1 ff02::fb ff0e::1
"""


class ScriptedResolver:
    """A resolver that returns its answers in order and then repeats the last one."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.queries: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.queries.append((host, port))
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def refusal(text: str, *, allow_loopback: bool = False) -> str:
    with pytest.raises(AddressRefused) as refused:
        parse_url(text, allow_loopback=allow_loopback)
    return refused.value.reason


@pytest.mark.parametrize(("text", "url"), PUBLIC_URLS.items())
def test_public_urls_have_a_canonical_form(text: str, url: str) -> None:
    assert parse_url(text).url == url
    assert parse_url(url).url == url


@pytest.mark.parametrize("text", [*REFUSED_URLS.split(), *LISTED_URLS, *CONTROL_URLS], ids=ascii)
def test_other_urls_are_refused_with_a_reason(text: str) -> None:
    assert refusal(text)


def test_there_are_enough_examples_both_ways() -> None:
    assert len(PUBLIC_URLS) + len(PUBLIC_ADDRESSES.split()) >= 70
    assert len(REFUSED_URLS.split()) + len(LISTED_URLS) + len(CONTROL_URLS) + len(OTHER_ADDRESSES.split()) >= 300


def test_a_target_has_all_parts_of_the_url() -> None:
    assert parse_url("https://Example.com:444/a?b=1#c") == Target(
        scheme="https", host="example.com", port=444, path="/a?b=1"
    )


@pytest.mark.parametrize("text", PUBLIC_ADDRESSES.split())
def test_public_addresses_are_public(text: str) -> None:
    assert why_not_public(ipaddress.ip_address(text)) is None


@pytest.mark.parametrize("text", OTHER_ADDRESSES.split())
def test_other_addresses_are_not_public(text: str) -> None:
    assert why_not_public(ipaddress.ip_address(text))


def test_an_address_that_ipaddress_calls_private_is_never_public() -> None:
    @given(st.ip_addresses())
    def check(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
        if why_not_public(address) is None:
            # Teredo and 6to4 are judged by the IPv4 address inside; newer versions of Python call all of them private.
            is_tunnel = isinstance(address, ipaddress.IPv6Address) and (address.teredo or address.sixtofour)
            assert is_tunnel or not (address.is_private or address.is_multicast or address.is_link_local)

    check()


@given(st.text(max_size=40))
def test_the_canonical_host_is_stable_for_any_text(text: str) -> None:
    try:
        host = check_host(text)
    except AddressRefused:
        return
    assert host.isascii()
    assert check_host(host) == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "[::1]", "localhost", "a.localhost", "[::ffff:127.0.0.1]"])
def test_loopback_needs_permission(host: str) -> None:
    assert refusal(f"http://{host}:8080/")
    assert parse_url(f"http://{host}:8080/", allow_loopback=True).port == 8080


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "169.254.169.254", "[::]", "[fe80::1]", "127.1", "x.local"])
def test_permission_for_loopback_allows_nothing_else(host: str) -> None:
    assert refusal(f"http://{host}/", allow_loopback=True)


@pytest.mark.parametrize(
    "host",
    ["10.0.0.1", "172.31.0.1", "192.168.1.20", "[fd12::1]", "[::ffff:10.0.0.1]", "searxng", "x.lan", "a.b.internal"],
)
def test_private_networks_need_permission(host: str) -> None:
    assert refusal(f"http://{host}:8080/", allow_loopback=True)
    assert parse_url(f"http://{host}:8080/", allow_private=True).port == 8080
    assert is_local_url(f"http://{host}:8080/search")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "0.0.0.0",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "metadata",
    ],
)
def test_permission_for_private_networks_allows_nothing_else(host: str) -> None:
    with pytest.raises(AddressRefused):
        parse_url(f"http://{host}/", allow_private=True)


def test_a_public_name_is_not_local() -> None:
    assert not is_local_url("http://search.example.com/")


async def test_public_addresses_are_returned_without_duplicates() -> None:
    resolver = ScriptedResolver(["93.184.216.34", "2606:4700::1111", "93.184.216.34", "::ffff:1.1.1.1"])
    found = await resolve_public("Example.COM.", 443, resolver=resolver)
    assert found == ("93.184.216.34", "2606:4700::1111", "1.1.1.1")
    assert resolver.queries == [("example.com", 443)]


@pytest.mark.parametrize(
    "bad",
    [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "::ffff:10.0.0.1",
        "fe80::1%eth0",
        "64:ff9b::7f00:1",
        "nonsense",
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
async def test_one_non_public_address_refuses_the_name(bad: str, is_first: bool) -> None:
    answers = [bad, "93.184.216.34"] if is_first else ["93.184.216.34", bad]
    with pytest.raises(AddressRefused, match=r"example\.com resolves to"):
        await resolve_public("example.com", 443, resolver=ScriptedResolver(answers))


async def test_every_resolution_is_checked_again() -> None:
    resolver = ScriptedResolver(["93.184.216.34"], ["127.0.0.1"])
    assert await resolve_public("rebind.example", 80, resolver=resolver) == ("93.184.216.34",)
    with pytest.raises(AddressRefused, match="loopback"):
        await resolve_public("rebind.example", 80, resolver=resolver)


async def test_ip_addresses_and_refused_names_are_never_resolved() -> None:
    resolver = ScriptedResolver(["93.184.216.34"])
    assert await resolve_public("8.8.8.8", 443, resolver=resolver) == ("8.8.8.8",)
    assert await resolve_public("2606:4700::1111", 443, resolver=resolver) == ("2606:4700::1111",)
    for host in ("10.0.0.1", "127.1", "::1", "metadata.google.internal", "localhost", ""):
        with pytest.raises(AddressRefused):
            await resolve_public(host, 443, resolver=resolver)
    with pytest.raises(AddressRefused, match="port"):
        await resolve_public("example.com", 0, resolver=resolver)
    assert resolver.queries == []


async def test_resolving_to_loopback_needs_permission() -> None:
    resolver = ScriptedResolver(["127.0.0.1"])
    assert await resolve_public("example.test", 80, resolver=resolver, allow_loopback=True) == ("127.0.0.1",)
    with pytest.raises(AddressRefused):
        await resolve_public("example.test", 80, resolver=resolver)


async def test_a_name_without_an_address_is_unknown() -> None:
    async def failing(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(HostUnknown, match="Name or service not known"):
        await resolve_public("nowhere.example", 80, resolver=failing)
    with pytest.raises(HostUnknown, match="no address"):
        await resolve_public("nowhere.example", 80, resolver=ScriptedResolver([]))


async def test_the_system_resolver_resolves_localhost() -> None:
    async with asyncio.timeout(10):
        found = await resolve_public("localhost", 80, allow_loopback=True)
    assert set(found) <= {"127.0.0.1", "::1"}
