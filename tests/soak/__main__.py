"""`python -m tests.soak [--minutes M] [--seed N] [--kinds K,…]`: the fault campaign, an hour long by default.

Every round prints its seed; the folder of a failed round stays in `soak-failures/`.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.soak.rounds import ROUNDS, build_shim

FAILURES = Path("soak-failures")


def run_round(kind: str, seed: int, shim: Path) -> bool:
    """Run one round; on failure keep its folder and print where it is."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        ROUNDS[kind](folder, random.Random(seed), shim)
    except Exception:  # noqa: BLE001 (the edge of a round: whatever it raises is a finding)
        kept = FAILURES / f"{kind}-{seed}"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept, symlinks=True, ignore_dangling_symlinks=True)
        print(f"{kind} seed {seed}: FAILED, folder {kept}\n{traceback.format_exc()}", flush=True)
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{kind} seed {seed}: ok", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, help="repeat the round of this seed (with one kind)")
    parser.add_argument("--kinds", default=",".join(ROUNDS))
    given = parser.parse_args()
    kinds = given.kinds.split(",")
    end = time.monotonic() + given.minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        shim = build_shim(Path(folder))
        if given.seed is not None:
            return 0 if all(run_round(kind, given.seed, shim) for kind in kinds) else 1
        failed = count = 0
        while time.monotonic() < end:
            failed += not run_round(kinds[count % len(kinds)], random.randrange(1 << 30), shim)
            count += 1
    print(f"{count} rounds, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
