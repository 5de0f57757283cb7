"""A subcommand that development does not use every day is asked about, whatever it does."""

import pytest

from tests.tooling.safety.judge_harness import decision
from tooling.contract.action import Decision
from tooling.safety.shell.rules import load_rules, unknown_subcommand

UNKNOWN = """
systemctl hybrid-sleep
systemctl -q --user preset-all
pio pkg unpublish thing
jj config set --user ui.pager x
npm undo-everything
cargo reach-out
redis-cli -h localhost XTRIM s MAXLEN 0
redis-cli client kill 3
python3 -m pip undo
wp plugin install spy
etcdctl --endpoints=localhost:2379 user add root
mix deploy.all
"""
KNOWN = """
systemctl --user -t service list-units
systemctl status
npm --prefix web test
cargo +nightly clippy --fix
uv --directory api sync
redis-cli -n 1 GET a
pip3 install -r requirements.txt
vhs demo.tape
crystal src/main.cr
celery -A proj worker
npm $ACTION
hg frobnicate --help
mix deps.get
"""


def test_an_unknown_subcommand_asks() -> None:
    assert [line for line in UNKNOWN.strip().splitlines() if decision(line) is not Decision.ASK] == []


def test_a_known_subcommand_a_file_and_help_do_not_ask() -> None:
    assert [line for line in KNOWN.strip().splitlines() if decision(line) is not Decision.ALLOW] == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("x a", ""),
        ("x b", "b"),
        ("x a c", ""),
        ("x a d", "d"),
        ("x -c a", ""),
        ("x -c v b", "b"),
        ("x", ""),
        ("y b", ""),
    ],
)
def test_the_subcommand_is_found_behind_options_and_at_the_second_level(line: str, found: str) -> None:
    words = tuple(line.split())
    known = {"x": frozenset({"a"}), "x a": frozenset({"c"})}
    assert unknown_subcommand(words, known) == found


def test_every_listed_program_is_known_and_every_second_level_has_a_first() -> None:
    rules = load_rules()
    for name in rules.subcommands:
        first, _, second = name.partition(" ")
        assert rules.has_program(first), name
        assert not second or second.rpartition(" ")[2] in rules.subcommands[name.rpartition(" ")[0]], name
