"""`agent rules`: commands that run without asking, and commands that never run."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from os.path import normpath
from pathlib import Path
from typing import Annotated

import typer

from agent.config.load import load_settings
from agent.config.rules import CommandRule, add_rule, all_rules, remove_rule
from agent.config.user_dirs import config_file, current_folder, data_dir, os_environ
from agent.diagnostics.rule_test import TreatmentChange, find_changes
from agent.vocabulary.errors import InputError, UsageError
from cli.durations import parse_days
from cli.pages.columns import Column, render_table
from cli.pages.pages import print_table, stdout_colors, terminal_width
from cli.screen.colors import Tone
from tooling.approvals.rule_text import covers_command, split_digest
from tooling.approvals.script_content import script_digests
from tooling.contract.json_codec import encode
from tooling.contract.lazy_pattern import lazy_pattern
from tooling.safety.action_judge import ActionJudge
from tooling.safety.check import judge_command
from tooling.safety.shell.command import quote_word

app = typer.Typer(no_args_is_help=True)

OPTIONS_FIRST_HINT = "for example: agent rules add --deny git push --force"
MISSING_SCRIPT_HINT = "a rule for a script is bound to its content; -C DIR names the folder that the script is in"
_OWN_OPTIONS = frozenset({"--deny", "--project"})
_BLANK = lazy_pattern(r"\s")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
WordsArgument = Annotated[
    list[str], typer.Argument(metavar="WORDS...", help="The first words of a command, such as git push.")
]
DenyOption = Annotated[bool, typer.Option("--deny", help="A rule that denies instead of allowing.")]
FolderOption = Annotated[
    Path | None, typer.Option("-C", "--project", metavar="DIR", help="A rule that applies only in this folder.")
]


@app.command("list")
def list_rules(*, as_json: JsonOption = False) -> None:
    """List the rules and where they apply."""
    rules = all_rules(load_settings(environ=os_environ()).settings)
    if as_json:
        typer.echo(json.dumps(encode(rules), indent=2))
        return
    print_table(_table(rules, terminal_width()) if rules else ["(no rules)"])


def _table(rules: Sequence[CommandRule], width: int | None) -> list[str]:
    if width is None:
        return [f"{rule.effect:<5}  {rule.words}  ({rule.folder or 'everywhere'})" for rule in rules]
    tones: list[Tone] = ["good" if rule.effect == "allow" else "bad" for rule in rules]
    columns = [
        Column(header="EFFECT", cells=[rule.effect for rule in rules], tones=tones),
        Column(header="RULE", cells=[rule.words for rule in rules], min_width=16),
        Column(header="WHERE", cells=[rule.folder or "everywhere" for rule in rules], min_width=12, tone="quiet"),
    ]
    return render_table(columns, width, stdout_colors())


# The words of a command may look like options, so the options of `agent rules` come first.
_WORDS_LAST = {"allow_interspersed_args": False, "ignore_unknown_options": True}


@app.command("add", context_settings=_WORDS_LAST)
def add(words: WordsArgument, *, deny: DenyOption = False, project: FolderOption = None) -> None:
    """Add a rule. Commands that start with these words run without asking, or never with --deny."""
    rule = _bind_to_script(_rule(words, deny=deny, project=project))
    if not add_rule(config_file(os_environ()), rule):
        raise InputError(f"there is already a rule to {rule.effect} {rule.words!r}")
    typer.echo(f"{rule.effect} {rule.words} ({rule.folder or 'everywhere'})", err=True)


@app.command("rm", context_settings=_WORDS_LAST)
def remove(words: WordsArgument, *, deny: DenyOption = False, project: FolderOption = None) -> None:
    """Remove a rule. Without --deny, a rule that allows is removed if there is one, else the one that denies."""
    environ = os_environ()
    rule = _rule(words, deny=deny, project=project)
    known = all_rules(load_settings(environ=environ).settings)
    found = _same_words(rule, known) or ([] if deny else _same_words(replace(rule, effect="deny"), known))
    removed = [each for each in found if remove_rule(config_file(environ), each)]
    if not removed:
        hint = _removal_hint(rule, known) or "`agent rules list` shows the rules"
        raise InputError(f"there is no rule to {rule.effect} {rule.words!r}", hint)
    for each in removed:
        typer.echo(f"removed: {each.effect} {each.words} ({each.folder or 'everywhere'})", err=True)


@app.command("test")
def test(
    *,
    against: Annotated[
        str, typer.Option("--against", metavar="AGE", help="How far to look back: 12h, 30d, 4w.")
    ] = "30d",
    as_json: JsonOption = False,
) -> None:
    """Show past commands that current rules would decide differently."""
    environ = os_environ()
    settings = load_settings(environ=environ).settings
    count, changes = find_changes(data_dir(environ), settings, days=parse_days(against, "--against"))
    if as_json:
        typer.echo(json.dumps({"commands": count, "changes": encode(changes)}, indent=2))
        return
    for change in changes:
        typer.echo(_format_change(change))
    typer.echo(f"{count} past commands, {len(changes)} would be treated differently", err=True)


def _rule(words: list[str], *, deny: bool, project: Path | None) -> CommandRule:
    if len(words) > 1 and (_BLANK.search(words[0]) or _OWN_OPTIONS & {*words}):
        raise UsageError("options of `agent rules` come before the words of the rule", OPTIONS_FIRST_HINT)
    text = words[0].strip() if len(words) == 1 else " ".join(map(quote_word, words))
    if text.partition(" ")[0] in ("allow", "deny"):
        raise UsageError("a rule begins with the name of a program", OPTIONS_FIRST_HINT)
    folder = str(project.expanduser().resolve()) if project else ""
    return CommandRule(effect="deny" if deny else "allow", words=text, folder=folder)


def _bind_to_script(rule: CommandRule) -> CommandRule:
    """Return an allow rule that names a script with the digest of its content, like the rules that approvals offer."""
    if rule.effect == "deny" or not rule.words or split_digest(rule.words)[0]:
        return rule
    folder = Path(rule.folder) if rule.folder else current_folder()
    verdict = judge_command(rule.words, workspace=folder, judge=ActionJudge())
    words = _split(rule.words)
    named = {Path(normpath(folder / word)) for word in words}
    if "/" in words[0] and any(script.path in named and not script.path.exists() for script in verdict.scripts):
        raise InputError(f"there is no script {words[0]} in {folder}", MISSING_SCRIPT_HINT)
    # Build files that the words do not name, such as package.json, are bound when a run first uses the rule.
    commands = {script.command for script in verdict.scripts if script.path in named}
    digests = script_digests(script for script in verdict.scripts if script.command in commands)
    bound = (digest for command, digest in digests.items() if covers_command(rule.words, command))
    return replace(rule, words=f"{digest} {rule.words}") if (digest := next(bound, "")) else rule


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        # An unmatched apostrophe.
        return text.split()


def _same_words(wanted: CommandRule, known: Sequence[CommandRule]) -> list[CommandRule]:
    """Return the rule, or all rules with its words that are bound to some content of their script."""
    others = (rule for rule in known if rule == replace(wanted, words=rule.words))
    return [rule for rule in others if wanted.words in (rule.words, split_digest(rule.words)[1])]


def _removal_hint(wanted: CommandRule, known: tuple[CommandRule, ...]) -> str:
    """Return the commands that remove rules with the same words elsewhere."""
    found = [rule for rule in known if wanted.words in (rule.words, split_digest(rule.words)[1])]
    return " or ".join(
        shlex.join(
            ("agent", "rules", "rm")
            + (("--deny",) if rule.effect == "deny" else ())
            + (("-C", rule.folder) if rule.folder else ())
            + (rule.words,)
        )
        for rule in found
    )


def _format_change(change: TreatmentChange) -> str:
    return f"{change.before:<7} -> {change.now:<7}  {change.command}" + (
        f"  ({change.reason})" if change.reason else ""
    )
