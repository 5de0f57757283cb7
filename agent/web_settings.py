"""The settings of a run as the web tools want them."""

from agent.config.settings import Settings
from agent.version import VERSION
from tooling.web.settings import WebSettings


def web_settings(settings: Settings) -> WebSettings:
    """Return limits, choices and keys for everything that tools ask of the web."""
    return WebSettings(
        allow_loopback=settings.web_allow_loopback,
        timeout_s=settings.web_timeout_s,
        max_bytes=settings.web_max_bytes,
        user_agent=f"Mozilla/5.0 (compatible; windlass/{VERSION})",
        keys=settings.keys,
        search_order=settings.search_order,
        search_fanout=settings.search_fanout,
        search_urls=settings.search_urls,
        search_timeout_s=settings.search_timeout_s,
    )
