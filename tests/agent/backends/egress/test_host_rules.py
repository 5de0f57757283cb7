"""Which destinations the egress rules allow."""

import pytest

from agent.backends.egress.host_rules import EgressRules, HostRuleInvalid

RULES = EgressRules(
    allow=("example.org", ".example.com", "Bücher.example", "registry.npmjs.org."),
    deny=("secret.example.com", ".evil.example.com"),
)

ALLOWED = """
    example.org EXAMPLE.org example.org. example.com www.example.com a.b.example.com xn--bcher-kva.example
    bücher.example registry.npmjs.org notsecret.example.com deeper.secret.example.com
"""
REFUSED = """
    www.example.org example.org.evil.net notexample.org notexample.com example.com.evil.net org com
    secret.example.com SECRET.example.com. evil.example.com a.evil.example.com localhost
    127.0.0.1 8.8.8.8 ::1 [::1] 2130706433 0x7f.1 127.1 -x..y
"""


@pytest.mark.parametrize("host", ALLOWED.split())
def test_allowed_hosts(host: str) -> None:
    assert RULES.decide(host, 443).allowed


@pytest.mark.parametrize("host", REFUSED.split())
def test_other_hosts_are_refused_with_a_reason(host: str) -> None:
    decision = RULES.decide(host, 443)
    assert not decision.allowed
    assert decision.reason


@pytest.mark.parametrize(
    ("port", "mode", "allowed"),
    [
        (443, None, True),
        (80, None, True),
        (443, "tunnel", True),
        (80, "tunnel", False),
        (80, "plain", True),
        (443, "plain", False),
        (22, None, False),
        (0, None, False),
        (8443, "tunnel", False),
    ],
)
def test_tunnels_and_plain_requests_have_different_ports(port: int, mode: object, allowed: bool) -> None:
    assert RULES.decide("example.org", port, mode=mode).allowed is allowed  # type: ignore[arg-type]


def test_the_reason_names_the_rule_or_the_flag_that_would_add_one() -> None:
    assert RULES.decide("example.org", 443).reason == "allowed by the rule example.org"
    assert (
        RULES.decide("a.evil.example.com", 443).reason == "a.evil.example.com is denied by the rule .evil.example.com"
    )
    assert "--allow-net other.net" in RULES.decide("other.net", 443).reason


def test_an_added_host_is_allowed_unless_it_is_denied() -> None:
    wider = RULES.with_allowed(".other.net").with_allowed("secret.example.com")
    assert wider.decide("www.other.net", 443).allowed
    assert not wider.decide("secret.example.com", 443).allowed
    assert not RULES.decide("www.other.net", 443).allowed


@pytest.mark.parametrize(
    "rule", ["", ".", "*", "*.example.org", "127.0.0.1", "[::1]", "a b", "http://x.org", "x.org:80"]
)
def test_a_rule_that_is_not_a_host_name_is_an_error(rule: str) -> None:
    with pytest.raises(HostRuleInvalid):
        EgressRules(allow=(rule,))
    with pytest.raises(HostRuleInvalid):
        EgressRules(deny=(rule,))


def test_the_error_about_a_star_suggests_a_dot() -> None:
    with pytest.raises(HostRuleInvalid, match=r"write \.example\.org"):
        EgressRules(allow=("*.example.org",))
