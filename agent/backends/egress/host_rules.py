"""Which hosts the box may reach: exact names or dot-suffixes on two lists, of which the deny list wins."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.web.addresses.hostnames import HostInvalid, normalize_host
from tooling.web.addresses.public_ranges import parse_ip

ProxyMode: TypeAlias = Literal["tunnel", "plain"]


class HostRuleInvalid(ValueError):
    """A rule that names no host."""


class EgressDecision(NamedTuple):
    """Whether a host may be reached, and the rule or the lack of one that says so."""

    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRules:
    """`example.org` is that host alone, `.example.org` the host and everything below it."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    tunnel_ports: frozenset[int] = frozenset({443})
    plain_ports: frozenset[int] = frozenset({80})

    def __post_init__(self) -> None:
        object.__setattr__(self, "allow", tuple(map(normalize_rule, self.allow)))
        object.__setattr__(self, "deny", tuple(map(normalize_rule, self.deny)))

    def with_allowed(self, rule: str) -> "EgressRules":
        """Return the rules with one more allowed host or suffix."""
        return replace(self, allow=(*self.allow, rule))

    def decide(self, host: str, port: int, *, way: ProxyMode | None = None) -> EgressDecision:
        """Judge one destination; `way` tells a TLS tunnel from a plain request, which have ports of their own."""
        try:
            host = normalize_host(host)
        except HostInvalid as error:
            return EgressDecision(False, str(error))
        if parse_ip(host) is not None:
            return EgressDecision(False, f"{host} is a numeric address; only names can be allowed")
        if denied := _find_match(self.deny, host):
            return EgressDecision(False, f"{host} is denied by the rule {denied}")
        allowed = _find_match(self.allow, host)
        if allowed is None:
            return EgressDecision(False, f"{host} is not an allowed host; --allow-net {host} would allow it")
        if port not in self._ports(way):
            return EgressDecision(False, f"port {port} is not open; only https on 443 and http on 80 are")
        return EgressDecision(True, f"allowed by the rule {allowed}")

    def find_deny_rule(self, host: str) -> str | None:
        """Return the rule that denies a host in its one spelling, or None."""
        return _find_match(self.deny, host)

    def find_allow_rule(self, host: str) -> str | None:
        """Return the rule that allows a host in its one spelling, or None; a denied one has none."""
        return None if self.find_deny_rule(host) else _find_match(self.allow, host)

    def _ports(self, way: ProxyMode | None) -> frozenset[int]:
        match way:
            case "tunnel":
                return self.tunnel_ports
            case "plain":
                return self.plain_ports
            case None:
                return self.tunnel_ports | self.plain_ports


def normalize_rule(text: str) -> str:
    """Return a rule in its one spelling, or say why it is none."""
    dot = "." if text.startswith(".") else ""
    try:
        host = normalize_host(text.removeprefix("."))
    except HostInvalid as error:
        hint = f"; write .{text[2:]} for a host and all below it" if text.startswith("*.") else ""
        raise HostRuleInvalid(f"{text!r} is no host: {error}{hint}") from error
    if parse_ip(host) is not None:
        raise HostRuleInvalid(f"{text!r} is a numeric address; only names can be allowed or denied")
    return f"{dot}{host}"


def _find_match(rules: Sequence[str], host: str) -> str | None:
    return next((rule for rule in rules if host == rule.removeprefix(".") or _is_subdomain(host, rule)), None)


def _is_subdomain(host: str, rule: str) -> bool:
    return rule.startswith(".") and host.endswith(rule)
