"""What tools run in a workspace is noted before the first command, unless the run ends first."""

from pathlib import Path

from agent.sessions.checkpoints.code_files import CodeFiles


def test_a_look_that_is_stopped_ends_at_the_next_folder(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "Makefile").write_text("all:\n")
    (tmp_path / "Makefile").write_text("all:\n")
    files = CodeFiles((tmp_path,), tmp_path, ())
    answers = iter((False, True))
    files.remember(lambda: next(answers))
    found = files.find_changed(lambda moment_ns: True, {}, lambda path: False)
    assert [file.path for file in found] == ["below/Makefile"]
