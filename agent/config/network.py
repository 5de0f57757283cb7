"""Proxies and certificates from the environment, as curl and httpx understand its variables."""

from collections.abc import Mapping
from urllib.parse import urlsplit

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def find_proxy(url: str, environ: Mapping[str, str]) -> str:
    """Return the proxy for a URL, empty if there is none."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    # Proxies are for external hosts, not for the user's machine.
    if host in LOOPBACK or _is_excepted(host, parts.port, _read(environ, "no_proxy")):
        return ""
    proxy = _read(environ, f"{parts.scheme}_proxy") or _read(environ, "all_proxy")
    return proxy if "://" in proxy or not proxy else f"http://{proxy}"


def find_certificates(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the file and the folder of trusted certificates; both empty for the default."""
    file = environ.get("SSL_CERT_FILE", "")
    return (file, "") if file else ("", environ.get("SSL_CERT_DIR", ""))


def _read(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name) or environ.get(name.upper()) or "").strip()


def _is_excepted(host: str, port: int | None, no_proxy: str) -> bool:
    for entry in no_proxy.lower().replace(",", " ").split():
        name = entry.lstrip("*").removeprefix("[").removesuffix("]")
        if entry == "*" or host == name.lstrip(".") or host.endswith(f".{name.lstrip('.')}"):
            return True
        if port is not None and entry in (f"{host}:{port}", f"[{host}]:{port}"):
            return True
    return False
