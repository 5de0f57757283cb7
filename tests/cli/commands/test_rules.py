"""`agent rules`: rules whose words look like options, removing rules, and advice that works."""

import re

import pytest

from tests.cli.terminal_user import User

pytestmark = pytest.mark.slow


def test_the_words_of_a_rule_may_look_like_options(user: User) -> None:
    added = user.agent("rules", "add", "python3", "-m", "http.server")
    assert (added.exit_code, added.stderr) == (0, "allow python3 -m http.server (everywhere)\n")
    user.agent("rules", "add", "--deny", "git", "push", "--force")
    user.agent("rules", "add", "git", "commit", "-m", "two words")
    assert user.agent("rules", "list").stdout.splitlines() == [
        "allow  python3 -m http.server  (everywhere)",
        "allow  git commit -m 'two words'  (everywhere)",
        "deny   git push --force  (everywhere)",
    ]


def test_an_option_after_the_words_is_refused_with_the_right_order(user: User) -> None:
    for words in (("git push", "--deny"), ("git", "push", "--deny"), ("git push", "-C", ".")):
        refused = user.agent("rules", "add", *words)
        assert refused.exit_code == 2
        assert "agent rules add --deny git push --force" in refused.stderr
    assert user.agent("rules", "list").stdout == "(no rules)\n"


def test_a_rule_to_deny_is_not_taken_for_one_that_allows_a_program_of_that_name(user: User) -> None:
    for words in (("deny", "git", "push"), ("deny git push",), ("allow", "git", "push")):
        refused = user.agent("rules", "add", *words)
        assert refused.exit_code == 2
        assert "agent rules add --deny git push" in refused.stderr
    assert user.agent("rules", "list").stdout == "(no rules)\n"


def test_a_rule_that_denies_is_removed_by_its_words(user: User) -> None:
    user.agent("rules", "add", "--deny", "git", "push", "--force")
    removed = user.agent("rules", "rm", "git", "push", "--force")
    assert (removed.exit_code, removed.stderr) == (0, "removed: deny git push --force (everywhere)\n")
    assert user.agent("rules", "list").stdout == "(no rules)\n"


def test_a_missing_rule_names_the_command_that_removes_the_one_elsewhere(user: User) -> None:
    user.agent("rules", "add", "-C", "/srv/project", "npm publish")
    refused = user.agent("rules", "rm", "npm publish")
    assert refused.exit_code != 0
    assert "hint: agent rules rm -C /srv/project 'npm publish'" in refused.stderr


def test_the_advised_rule_allows_a_command_behind_a_wrapper(user: User) -> None:
    command = "timeout 9 python3 -m http.server --bind 0.0.0.0 nonsense"
    project = user.home / "project"
    project.mkdir()
    denied = user.agent("exec", "--", command, cwd=project)
    assert (denied.exit_code, "--allow 'python3 -m http.server" in denied.stderr) == (57, True)
    user.agent("rules", "add", "python3", "-m", "http.server")
    assert "a run would allow it" in user.agent("check", command).stdout
    assert user.agent("exec", "--", command, cwd=project).exit_code == 2


def test_a_rule_that_i_add_for_a_script_no_longer_applies_once_the_script_changes(user: User) -> None:
    project = user.home / "project"
    project.mkdir()
    for words in (("./deploy.sh", "production"), ("./deploy.sh production",)):
        script = project / "deploy.sh"
        script.write_text("#!/bin/sh\necho deployed\n")
        script.chmod(0o755)
        added = user.agent("rules", "add", *words, cwd=project)
        assert re.fullmatch(r"allow sha256:\w+ \./deploy\.sh production \(everywhere\)\n", added.stderr)
        assert user.agent("exec", "--", "./deploy.sh production", cwd=project).stdout == "deployed\n"
        script.write_text("#!/bin/sh\necho something else\n")
        assert user.agent("exec", "--", "./deploy.sh production", cwd=project).exit_code == 57
        removed = user.agent("rules", "rm", *words, cwd=project)
        assert (removed.exit_code, user.agent("rules", "list").stdout) == (0, "(no rules)\n")


def test_a_rule_for_a_script_of_another_folder_is_bound_to_that_one(user: User) -> None:
    project = user.home / "project"
    (project / "tools").mkdir(parents=True)
    (project / "tools" / "publish.py").write_text("print('published')\n")
    added = user.agent("rules", "add", "-C", str(project), "python3", "tools/publish.py", "production")
    assert added.stderr.startswith("allow sha256:")
    listed = user.agent("rules", "list").stdout
    assert re.fullmatch(rf"allow  sha256:\w+ python3 tools/publish\.py production  \({project}\)\n", listed)
    (project / "two words.sh").touch()
    for text in ("bash 'two words.sh'", r"./tools/../two\ words.sh"):
        assert user.agent("rules", "add", "-C", str(project), text).stderr.startswith("allow sha256:")


def test_a_rule_for_a_script_that_does_not_exist_is_refused(user: User) -> None:
    refused = user.agent("rules", "add", "./missing.sh")
    assert (refused.exit_code, "there is no script ./missing.sh" in refused.stderr) == (42, True)
    assert user.agent("rules", "list").stdout == "(no rules)\n"
    assert user.agent("rules", "add", "--deny", "./missing.sh").stderr == "deny ./missing.sh (everywhere)\n"


def test_a_script_that_changed_can_be_allowed_again_and_all_its_rules_are_removed_together(user: User) -> None:
    script = user.home / "deploy.sh"
    for content in ("first", "second"):
        script.write_text(content)
        assert user.agent("rules", "add", "./deploy.sh").exit_code == 0
    assert user.agent("rules", "add", "./deploy.sh").exit_code == 42
    assert len(user.agent("rules", "list").stdout.splitlines()) == 2
    assert len(user.agent("rules", "rm", "./deploy.sh").stderr.splitlines()) == 2
    assert user.agent("rules", "list").stdout == "(no rules)\n"
