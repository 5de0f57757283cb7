"""Print the versions of uv.lock as pip constraints, so that uv and pip install the same packages."""

import sys
import tomllib
from pathlib import Path


def constraints(lock: str) -> list[str]:
    """Return `name==version` for every package that the lock pins to one version."""
    packages = [package for package in tomllib.loads(lock)["package"] if "registry" in package["source"]]
    names = [package["name"] for package in packages]
    return [f"{package['name']}=={package['version']}" for package in packages if names.count(package["name"]) == 1]


if __name__ == "__main__":
    sys.stdout.write("\n".join(constraints(Path(sys.argv[1]).read_text())) + "\n")
