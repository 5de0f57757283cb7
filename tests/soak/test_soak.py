"""The short form of the fault campaign: one round of each kind, with another seed every time."""

import random
from pathlib import Path

import pytest

from tests.programs import needs
from tests.soak.power_cut import Change, surviving
from tests.soak.rounds import ROUNDS, build_shim


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_shim(tmp_path_factory.mktemp("shim"))


@pytest.mark.slow
@needs("gcc")
@pytest.mark.parametrize("kind", ROUNDS)
def test_a_round_of_the_campaign(kind: str, tmp_path: Path, shim: Path) -> None:
    seed = random.randrange(1 << 30)
    print(f"repeat it with: python -m tests.soak --kinds {kind} --seed {seed}")
    ROUNDS[kind](tmp_path, random.Random(seed), shim)


def test_only_synced_changes_survive_a_power_cut() -> None:
    changes = [
        Change(kind="c", path="/d/log"),
        Change(kind="w", path="/d/log", data=b"kept"),
        Change(kind="s", path="/d/log"),
        Change(kind="w", path="/d/log", offset=4, data=b"lost"),
        Change(kind="c", path="/d/.a.tmp"),
        Change(kind="w", path="/d/.a.tmp", data=b"a"),
        Change(kind="s", path="/d/.a.tmp"),
        Change(kind="r", path="/d/.a.tmp", other="/d/a"),
    ]
    kept = surviving(changes, moment=0)
    assert [(change.kind, change.path, change.data) for change in kept] == [
        ("c", "/d/log", b""),
        ("w", "/d/log", b"kept"),
        ("c", "/d/.a.tmp", b""),
        ("w", "/d/.a.tmp", b"a"),
    ]
    assert surviving([*changes, Change(kind="s", path="/d")], moment=0)[-1].kind == "r"
    assert len(surviving(changes, moment=5)) == 5
