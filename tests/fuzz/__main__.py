"""`python -m tests.fuzz [--minutes M] [--seed N] [TARGET…]`: feed random inputs to the readers, until one fails.

An input that fails is printed, and repeated with `--input FILE`.
"""

import argparse
import random
import sys
import time
import traceback
from pathlib import Path

from tests.fuzz.targets import PIECES, TARGETS


def build_input(name: str, rng: random.Random) -> bytes:
    """Return pieces of valid inputs and random bytes, some of them damaged."""
    count = rng.choice((3, 10, 40, 200))
    parts = [rng.choice(PIECES[name]) if rng.random() < 0.85 else rng.randbytes(rng.randrange(6)) for _ in range(count)]
    data = bytearray(b"".join(parts))
    for _ in range(rng.choice((0, 0, 1, 5))):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--input", type=Path, help="feed this file to the targets once")
    given = parser.parse_args()
    if given.input:
        for name in given.targets:
            TARGETS[name](given.input.read_bytes())
        return 0
    rng, end, counts = random.Random(given.seed), time.monotonic() + given.minutes * 60, dict.fromkeys(given.targets, 0)
    print(f"seed {given.seed}", flush=True)
    while time.monotonic() < end:
        for name in given.targets:
            data = build_input(name, rng)
            counts[name] += 1
            try:
                TARGETS[name](data)
            except Exception:  # noqa: BLE001 (the edge of a target: whatever it raises is a finding)
                file = Path(f"fuzz-{name}-{given.seed}.bin")
                file.write_bytes(data)
                traceback.print_exc()
                print(f"{name} failed; repeat it with: python -m tests.fuzz {name} --input {file}")
                return 1
    print(", ".join(f"{name}: {count:,}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
