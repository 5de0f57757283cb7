"""Store the specs of the built-in tools: `python -m tests.tooling.stored_specs`, after changing one."""

import json

from tooling.contract.json_codec import encode
from tooling.registry import STORED_SPECS, TOOLS


def describe_specs() -> str:
    """Return the specs of the classes as they are stored."""
    specs = {tool.target: encode(tool.load().spec) for tool in TOOLS}
    return json.dumps(specs, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    STORED_SPECS.write_text(describe_specs(), "utf-8")
