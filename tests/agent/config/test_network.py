"""Which proxy applies to a URL."""

import pytest

from agent.config.network import find_certificates, find_proxy

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://host/v1", {}, ""),
        ("https://host/v1", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://host/v1", {"https_proxy": "proxy:3128"}, PROXY),
        ("https://host/v1", {"HTTP_PROXY": PROXY}, ""),
        ("http://host/v1", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://host/v1", {"ALL_PROXY": "socks5://proxy"}, "socks5://proxy"),
        ("https://host/v1", {"https_proxy": PROXY, "HTTPS_PROXY": "http://other"}, PROXY),
        ("http://localhost:8080/v1", {"ALL_PROXY": PROXY}, ""),
        ("http://[::1]:8080/v1", {"ALL_PROXY": PROXY}, ""),
        ("https://host/v1", {"ALL_PROXY": PROXY, "NO_PROXY": "*"}, ""),
        ("https://api.corp.test/v1", {"ALL_PROXY": PROXY, "NO_PROXY": "other, .corp.test"}, ""),
        ("https://corp.test/v1", {"ALL_PROXY": PROXY, "NO_PROXY": "*.corp.test"}, ""),
        ("https://notcorp.test/v1", {"ALL_PROXY": PROXY, "NO_PROXY": "corp.test"}, PROXY),
        ("https://10.1.2.3/v1", {"ALL_PROXY": PROXY, "NO_PROXY": "10.1.2.3"}, ""),
        ("https://[fd00::1]:8443/v1", {"ALL_PROXY": PROXY, "NO_PROXY": "[fd00::1]"}, ""),
        ("https://host:8443/v1", {"ALL_PROXY": PROXY, "NO_PROXY": "host:8443"}, ""),
        ("https://host/v1", {"ALL_PROXY": PROXY, "NO_PROXY": "host:8443"}, PROXY),
        ("https://host/v1", {"HTTPS_PROXY": " "}, ""),
    ],
)
def test_the_proxy_of_a_url(url: str, environ: dict[str, str], proxy: str) -> None:
    assert find_proxy(url, environ) == proxy


def test_a_file_of_certificates_goes_before_a_folder() -> None:
    assert find_certificates({}) == ("", "")
    assert find_certificates({"SSL_CERT_DIR": "/certs"}) == ("", "/certs")
    assert find_certificates({"SSL_CERT_DIR": "/certs", "SSL_CERT_FILE": "/ca.pem"}) == ("/ca.pem", "")
