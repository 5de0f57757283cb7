"""The folder for temporary files is the one that `tempfile` would use."""

from pathlib import Path

from agent.config.user_dirs import temp_folder


def test_the_first_usable_variable_names_it(tmp_path: Path) -> None:
    environ = {"TMPDIR": str(tmp_path / "missing"), "TEMP": str(tmp_path), "TMP": "/"}
    assert temp_folder(environ) == str(tmp_path)


def test_without_variables_it_is_the_usual_one() -> None:
    assert temp_folder({"TMPDIR": ""}) == "/tmp"
