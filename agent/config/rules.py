"""The user's allow and deny rules: which ones apply in a folder, adding and removing them."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from agent.config.settings import ProjectRules, Settings
from agent.config.user_file import read_user_file
from agent.config.values import unflatten
from agent.vocabulary.errors import InputError
from tooling.contract.fast_dataclass import dataclass
from tooling.contract.json_codec import decode
from tooling.files.open_regular import open_fd

Effect: TypeAlias = Literal["allow", "deny"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRule:
    """One rule: a command prefix, its effect, and the folder it applies to ("" means everywhere)."""

    effect: Effect
    words: str
    folder: str = ""


def all_rules(settings: Settings) -> tuple[CommandRule, ...]:
    """Return all rules, global ones first."""
    global_rules = ProjectRules(allow=settings.allow, deny=settings.deny)
    rules: list[CommandRule] = []
    for folder, group in (("", global_rules), *settings.projects.items()):
        rules += [CommandRule(effect="allow", words=words, folder=folder) for words in group.allow]
        rules += [CommandRule(effect="deny", words=words, folder=folder) for words in group.deny]
    return tuple(rules)


def rules_in_folder(settings: Settings, folder: Path) -> tuple[CommandRule, ...]:
    """Return the rules that apply in a folder."""
    return tuple(rule for rule in all_rules(settings) if not rule.folder or folder.is_relative_to(rule.folder))


def rules_for_folder(settings: Settings, folder: Path, effect: Effect) -> tuple[str, ...]:
    """Return the command prefixes of the rules that apply in a folder."""
    return tuple(rule.words for rule in rules_in_folder(settings, folder) if rule.effect == effect)


def add_rule(config: Path, rule: CommandRule) -> bool:
    """Add a rule to the settings file; return False if it is already there."""
    return _set_rule(config, rule, is_present=True)


def remove_rule(config: Path, rule: CommandRule) -> bool:
    """Remove a rule from the settings file; return False if it is not there."""
    return _set_rule(config, rule, is_present=False)


def _set_rule(config: Path, rule: CommandRule, *, is_present: bool) -> bool:
    if not rule.words.split():
        raise InputError("a rule needs at least one word", "for example: agent rules add 'git push'")
    with _locked(config):
        values = {given.path: given.value for given in read_user_file(config).values}
        known = all_rules(decode(Settings, unflatten(values)))
        if (rule in known) == is_present:
            return False
        group = [other.words for other in known if (other.effect, other.folder) == (rule.effect, rule.folder)]
        group = [*group, rule.words] if is_present else [words for words in group if words != rule.words]
        key = f"projects.{json.dumps(rule.folder)}.{rule.effect}" if rule.folder else rule.effect
        from agent.config.edit import set_value

        set_value(config, key, json.dumps(group, ensure_ascii=False))
    return True


@contextmanager
def _locked(config: Path) -> Iterator[None]:
    """Hold the lock that keeps concurrent changes of the rules from overwriting each other."""
    config.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = open_fd(config.parent / ".rules.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
