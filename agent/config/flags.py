"""Command line flags as the strongest layer."""

from collections.abc import Mapping, Sequence

from agent.config.origin import KeyPath, Leaf, Origin
from agent.config.values import checked, checked_leaves
from agent.vocabulary.errors import UsageError

_FLAG_NAMES = {"timeout_s": "--timeout"}
_ADDING = ("allow", "deny", "allow_net", "deny_net")


def flag_leaves(
    flags: Mapping[str, object], assignments: Sequence[str], *, below: Mapping[KeyPath, Leaf]
) -> tuple[Leaf, ...]:
    """Return the settings given as flags; a dedicated flag beats --set, None means not given."""
    leaves: list[Leaf] = [inner for text in assignments for inner in _assigned(text)]
    for name, value in flags.items():
        if value is not None and not (name in _ADDING and not value):
            leaves.append(_dedicated(name, value, below, leaves))
    return tuple(leaves)


def _assigned(text: str) -> tuple[Leaf, ...]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set {key}: expected key=value")
    path = tuple(part.strip() for part in key.split("."))
    origin = Origin(layer="flag", where="--set")
    return checked_leaves(Leaf(path=path, value=value.strip(), origin=origin, place="flag --set", is_text=True))


def _dedicated(name: str, value: object, below: Mapping[KeyPath, Leaf], given: Sequence[Leaf]) -> Leaf:
    flag = _FLAG_NAMES.get(name, "--" + name.replace("_", "-"))
    if name in _ADDING and isinstance(value, (list, tuple)):
        # A flag must not silently lift a prohibition that the user's file holds, so rules add up.
        value = [*_rules(name, below, given), *value]
    origin = Origin(layer="flag", where=flag)
    return checked(Leaf(path=(name,), value=value, origin=origin, place=f"flag {flag}", is_text=True))


def _rules(name: str, below: Mapping[KeyPath, Leaf], given: Sequence[Leaf]) -> list[object]:
    earlier = [below[(name,)]] if (name,) in below else []
    earlier += [leaf for leaf in given if leaf.path == (name,)]
    rules = earlier[-1].value if earlier else ()
    return list(rules) if isinstance(rules, (list, tuple)) else []
