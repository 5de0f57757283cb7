"""What may be deleted unasked: leftovers and what the text itself made, never sources, history or everything."""

from pathlib import Path

import pytest

from tests.tooling.safety.judge_harness import decision, judge_command
from tooling.contract.action import Decision


@pytest.mark.parametrize(
    "command",
    [
        "rm a.txt",
        "rm -f src/a.py src/b.py",
        "rm -rf build dist .venv packages/web/node_modules",
        "rm -rf target/* *.egg-info",
        "cd build && rm -rf *",
        "rm -rf /tmp/x",
        "mkdir -p demo/a && rm -rf demo",
        'd=$(mktemp -d); rm -rf "$d"',
        "find . -name '*.pyc' -delete",
        "find . -type d -empty -delete",
        "find . -name node_modules -prune -exec rm -rf {} +",
        'for f in *.bak; do rm "$f"; done',
        "ls *.log | xargs rm",
    ],
)
def test_leftovers_go_unasked(command: str) -> None:
    assert judge_command(command).reasons == ()


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf src",
        "rm -r build src",
        "rm -rf .git",
        "rm -rf build/../src",
        "rm -f *",
        'rm -rf "$x"',
        'rm "$x"',
        "cd nowhere; rm -rf build2/x y",
        "rm -rf demo; mkdir demo",
        "find . -name '*.py' -delete",
        "find . -mtime +3 -delete",
        "find . -name node_modules -prune -o -size +1k -exec rm {} +",
        "cat list | xargs rm",
        "rm -rf /tmp/*",
        "python3 -c 'import shutil; shutil.rmtree(\"src\")'",
    ],
)
def test_what_cannot_be_made_again_asks(command: str) -> None:
    assert decision(command) is Decision.ASK


@pytest.mark.parametrize(
    "command", ["rm -rf .", "rm -rf ./*", "rm -rf $PWD", "rm -rf ..", "rm -rf build/..", "rm -rf /srv"]
)
def test_the_workspace_itself_is_never_deleted(command: str) -> None:
    assert decision(command) is Decision.BLOCK


def test_a_folder_that_was_there_before_is_not_the_texts_own(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    assert judge_command("mkdir -p demo && rm -rf demo", cwd=tmp_path).decision is Decision.ASK
