"""The shipped rules match their examples, and broken rule files are reported."""

import json
import re
from pathlib import Path

import pytest

from tests.tooling.safety.judge_harness import CORPORA, WORKSPACE
from tests.tooling.tool_harness import TASK, USER
from tooling.contract.action import Action, Decision
from tooling.contract.context import ExecCtx
from tooling.safety.action_judge import ActionJudge
from tooling.safety.shell.path_access import PathAccess
from tooling.safety.shell.reader import ShellReader
from tooling.safety.shell.rules import PATTERNS_DIR, Exemption, Rule, load_rules, rule_texts, rule_word
from tooling.safety.shell.shell_judge import RULES_INCOMPLETE_WARNING

RULE_SET = load_rules()
RULES = RULE_SET.rules


def matching_rules(command: str) -> set[str]:
    reader = ShellReader(str(WORKSPACE))
    reader.read(command)
    access = PathAccess((WORKSPACE,), "/home/me")
    texts = [text for simple in reader.reading.commands for text in rule_texts(simple, access)]
    texts += [rule_word(text) for text in reader.reading.assigned]
    return {rule.id for text in texts for rule in RULE_SET.find_matches(text, chat_type="group")}


def test_every_rule_file_loads() -> None:
    assert RULE_SET.problems == ()
    assert [rule.id for rule in RULES if not re.compile(rule.pattern)] == []
    assert RULE_SET.is_complete
    assert len(RULES) >= 40
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_the_rule_files_have_the_documented_form() -> None:
    for path in PATTERNS_DIR.glob("*.json"):
        document = json.loads(path.read_text())
        assert {"description", "version", "lastUpdated", "patterns"} <= set(document)
        assert all(type(item["blocked"]) is bool for item in document["patterns"])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_matches_its_examples_and_not_its_counterexamples(rule: Rule) -> None:
    assert len(rule.match) >= 2
    assert len(rule.not_match) >= 2
    assert [example for example in rule.match if rule.id not in matching_rules(example)] == []
    assert [example for example in rule.not_match if rule.id in matching_rules(example)] == []


@pytest.mark.parametrize("exemption", RULE_SET.exemptions, ids=lambda exemption: exemption.id)
def test_an_exemption_lifts_its_rules_for_its_examples_and_for_no_counterexample(exemption: Exemption) -> None:
    assert min(len(exemption.match), len(exemption.not_match)) >= 2
    assert set(exemption.exempts) <= {rule.id for rule in RULES if not rule.blocked}
    assert [example for example in exemption.match if matching_rules(example) & {*exemption.exempts}] == []
    assert [example for example in exemption.not_match if not matching_rules(example)] == []


@pytest.mark.parametrize("option", [" --a=b", " -n x", " a", " --", " a:b", ".a()"])
def test_many_words_after_an_exempt_command_are_matched_without_backtracking(option: str) -> None:
    for exemption in RULE_SET.exemptions:
        for example in exemption.match:
            RULE_SET.find_matches(example + option * 200 + "!")


def test_an_exemption_needs_a_rule_to_lift_and_never_lifts_a_block(tmp_path: Path) -> None:
    rule = {"id": "r", "pattern": "^frob", "blocked": True, "category": "x", "reason": "it frobs"}
    exemption = {"id": "e", "pattern": "frob", "forbidden": "now", "exempts": ["r"]}
    broken = {"id": "b", "pattern": "frob", "forbidden": "", "exempts": ["r"]}
    (tmp_path / "a.json").write_text(json.dumps({"patterns": [rule], "exemptions": [exemption, broken]}))
    rules = load_rules(tmp_path)
    assert rules.problems == ("a.json: an exemption was skipped: b exempts nothing or forbids nothing",)
    assert [found.id for found in rules.find_matches("frob it")] == ["r"]


def test_a_redirection_is_judged_in_an_exempt_command() -> None:
    assert matching_rules("kubectl get pods > pods.txt") == set()
    assert matching_rules("kubectl get secrets > pods.txt") == {"cloud"}


def test_no_example_is_in_the_corpora() -> None:
    lines = {line.rpartition("\t")[2] for path in CORPORA.glob("*.txt") for line in path.read_text().splitlines()}
    examples = {example for rule in (*RULES, *RULE_SET.exemptions) for example in (*rule.match, *rule.not_match)}
    assert examples & lines == set()


def judge_command(judge: ActionJudge, command: str, tmp_path: Path, *, chat_type: str = "private") -> Decision:
    ctx = ExecCtx(user_id=USER, task_id=TASK, working_dir=tmp_path, chat_type=chat_type)
    return judge.judge(Action(tool="run_command", effect="execute", subject=command, cwd=tmp_path), ctx).decision


def rule(id: str, pattern: str, **more: object) -> dict[str, object]:
    return {"id": id, "pattern": pattern, "blocked": False, "category": "x", "reason": "because", **more}


def write_rules(folder: Path, *rules: dict[str, object]) -> None:
    (folder / "rules.json").write_text(json.dumps({"patterns": rules}))


@pytest.mark.parametrize("content", [None, "{broken", "[]", '{"patterns": {}}', '{"patterns": []}'])
def test_with_missing_or_broken_rules_every_command_needs_approval(tmp_path: Path, content: str | None) -> None:
    folder = tmp_path / "patterns"
    folder.mkdir()
    if content is not None:
        (folder / "rules.json").write_text(content)
    warnings: list[str] = []
    judge = ActionJudge(folder, warn=warnings.append)
    assert judge_command(judge, "ls", tmp_path) is Decision.ASK
    assert judge_command(judge, "rm -rf ~", tmp_path) is Decision.ASK
    assert RULES_INCOMPLETE_WARNING in warnings[0]


def test_a_bad_rule_is_skipped_and_reported(tmp_path: Path) -> None:
    write_rules(tmp_path, rule("bad", "("), {"id": "no pattern"}, rule("good", "^danger"))
    warnings: list[str] = []
    judge = ActionJudge(tmp_path, warn=warnings.append)
    assert judge_command(judge, "danger zone", tmp_path) is Decision.ASK
    assert judge_command(judge, "ls", tmp_path) is Decision.ALLOW
    assert len(warnings) == 2


@pytest.mark.parametrize("order", [1, -1])
def test_a_blocking_rule_wins_in_any_order(tmp_path: Path, order: int) -> None:
    write_rules(tmp_path, *[rule("ask", "^danger"), rule("block", "zone$", blocked=True)][::order])
    assert judge_command(ActionJudge(tmp_path), "DANGER ZONE", tmp_path) is Decision.BLOCK


def test_group_rules_apply_in_groups_only(tmp_path: Path) -> None:
    write_rules(tmp_path, rule("shared", "^long", group_only=True))
    judge = ActionJudge(tmp_path)
    assert judge_command(judge, "long job", tmp_path, chat_type="group") is Decision.ASK
    assert judge_command(judge, "long job", tmp_path) is Decision.ALLOW
