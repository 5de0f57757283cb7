"""Template of a new skill."""

from pathlib import Path

from agent.skills.skill import SKILL_FILE, is_skill_name
from agent.vocabulary.errors import InputError

_SKILL = """---
name: {name}
description: Counts the words of text files. Use when asked how long a text is.
---

# {title}

1. Run `python3 scripts/count.py FILE` with the file that the user means.
2. Answer with the number of words, and nothing else.
"""
_SCRIPT = """import sys
from pathlib import Path

for name in sys.argv[1:]:
    print(len(Path(name).read_text(encoding="utf-8").split()), name)
"""


def create_skill(parent: Path, name: str) -> Path:
    """Write a new skill and return its folder. Raises InputError if the name is taken or invalid."""
    if not is_skill_name(name):
        raise InputError(f"{name!r} is not a skill's name", "use lowercase letters, digits and single hyphens")
    folder = parent / name
    if folder.exists():
        raise InputError(f"{folder} already exists")
    (folder / "scripts").mkdir(mode=0o700, parents=True)
    title = name.replace("-", " ").capitalize()
    (folder / SKILL_FILE).write_text(_SKILL.format(name=name, title=title), "utf-8")
    (folder / "scripts" / "count.py").write_text(_SCRIPT, "utf-8")
    return folder
