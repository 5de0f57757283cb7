"""The hosts that the sandbox may reach: exact names or dot-suffixes; the deny list wins over the allow list."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

from tooling.contract.fast_dataclass import dataclass
from tooling.web.addresses.hostnames import HostInvalid, normalize_host
from tooling.web.addresses.public_ranges import parse_ip

ProxyMode: TypeAlias = Literal["tunnel", "plain"]


class HostRuleInvalid(ValueError):
    """A rule that is not a host name."""


class EgressDecision(NamedTuple):
    """Whether a host may be reached, and why."""

    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressRules:
    """Allowed and denied hosts: `example.org` is one host, `.example.org` includes its subdomains."""

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

    def decide(self, host: str, port: int, *, mode: ProxyMode | None = None) -> EgressDecision:
        """Decide about one destination; `mode` selects the ports of TLS tunnels or of plain requests."""
        try:
            host = normalize_host(host)
        except HostInvalid as error:
            return EgressDecision(False, str(error))
        if parse_ip(host) is not None:
            return EgressDecision(False, f"{host} is an IP address; only host names can be allowed")
        if denied := _find_match(self.deny, host):
            return EgressDecision(False, f"{host} is denied by the rule {denied}")
        allowed = _find_match(self.allow, host)
        if allowed is None:
            return EgressDecision(False, f"{host} is not an allowed host; allow it with --allow-net {host}")
        if port not in self._ports(mode):
            return EgressDecision(False, f"port {port} is not allowed; only https on 443 and http on 80 are")
        return EgressDecision(True, f"allowed by the rule {allowed}")

    def find_deny_rule(self, host: str) -> str | None:
        """Return the rule that denies a normalized host, or None."""
        return _find_match(self.deny, host)

    def find_allow_rule(self, host: str) -> str | None:
        """Return the rule that allows a normalized host, or None; a denied host has none."""
        return None if self.find_deny_rule(host) else _find_match(self.allow, host)

    def _ports(self, mode: ProxyMode | None) -> frozenset[int]:
        match mode:
            case "tunnel":
                return self.tunnel_ports
            case "plain":
                return self.plain_ports
            case None:
                return self.tunnel_ports | self.plain_ports


def normalize_rule(text: str) -> str:
    """Return a rule in its normal form. Raises HostRuleInvalid."""
    dot = "." if text.startswith(".") else ""
    try:
        host = normalize_host(text.removeprefix("."))
    except HostInvalid as error:
        hint = f"; write .{text[2:]} for a host and its subdomains" if text.startswith("*.") else ""
        raise HostRuleInvalid(f"{text!r} is not a host name: {error}{hint}") from error
    if parse_ip(host) is not None:
        raise HostRuleInvalid(f"{text!r} is an IP address; only host names can be allowed or denied")
    return f"{dot}{host}"


def _find_match(rules: Sequence[str], host: str) -> str | None:
    return next((rule for rule in rules if host == rule.removeprefix(".") or _is_subdomain(host, rule)), None)


def _is_subdomain(host: str, rule: str) -> bool:
    return rule.startswith(".") and host.endswith(rule)
