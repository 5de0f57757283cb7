"""The settings of a run as the web tools want them."""

from pathlib import Path

from agent.config.settings import Settings
from agent.version import VERSION
from tooling.web.settings import WebSettings


def web_settings(settings: Settings, cache_dir: Path | None = None) -> WebSettings:
    """Return limits, choices and keys for everything that tools ask of the web; no folder, no kept pages."""
    return WebSettings(
        allow_loopback=settings.web_allow_loopback,
        timeout_s=settings.web_timeout_s,
        max_bytes=settings.web_max_bytes,
        user_agent=f"Mozilla/5.0 (compatible; windlass/{VERSION})",
        keys=settings.keys,
        cache_dir=cache_dir if settings.web_cache else None,
        cache_bytes=settings.web_cache_mb * 1_000_000,
        respects_robots=settings.web_robots,
        host_connections=settings.web_host_connections,
        host_pause_s=settings.web_host_pause_s,
        max_chars=settings.fetch_max_chars,
        reader=settings.web_reader,
        reader_url=settings.web_reader_url,
        search_order=settings.search_order,
        search_fanout=settings.search_fanout,
        search_urls=settings.search_urls,
        search_timeout_s=settings.search_timeout_s,
    )
