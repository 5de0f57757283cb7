"""Deletions: build artifacts and files the text creates are free, sources, history and everything are not."""

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
def test_build_artifacts_and_own_files_are_deleted_without_asking(command: str) -> None:
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
def test_deleting_other_files_needs_approval(command: str) -> None:
    assert decision(command) is Decision.ASK


@pytest.mark.parametrize(
    "command", ["rm -rf .", "rm -rf ./*", "rm -rf $PWD", "rm -rf ..", "rm -rf build/..", "rm -rf /srv"]
)
def test_deleting_the_workspace_is_blocked(command: str) -> None:
    assert decision(command) is Decision.BLOCK


def test_mkdir_of_an_existing_folder_does_not_allow_deleting_it(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    assert judge_command("mkdir -p demo && rm -rf demo", cwd=tmp_path).decision is Decision.ASK
