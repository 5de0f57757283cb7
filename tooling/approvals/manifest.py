"""The permission manifest: everything a plan or run needs that would otherwise be asked for.

A manifest grants only actions with the verdict *ask*. Blocked actions stay blocked.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path

from tooling.approvals.rule_text import covers_command, rule_for
from tooling.contract.action import Action, Decision, Verdict
from tooling.contract.fast_dataclass import dataclass

# Every file below the workspace.
ANY_FILE = "**"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Permissions that are approved as one.

    `programs` are rules as for `--allow`, or exact commands; `hosts` are names, with a leading dot for all subdomains;
    `writes` and `deletes` are files, folders or patterns below the workspace; `tools` are other tools that ask;
    `secrets` are the names of keys; `max_usd` is the cost limit. `plan` is the hash of the only plan that it applies
    to; without one it applies to any.
    """

    plan: str = ""
    programs: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    max_usd: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it grants nothing."""
        return not any(getattr(self, name) for name in LISTS)

    def covers_hosts(self, hosts: Sequence[str]) -> bool:
        """Whether the manifest grants all hosts."""
        return all(any(_is_host_covered(rule, host) for rule in self.hosts) for host in hosts)

    def covers_paths(self, action: Action) -> bool:
        """Whether the manifest grants all files that an action writes or deletes."""
        needs = needed_for(action, Verdict(decision=Decision.ASK))
        return all(_is_path_covered(self.writes, path) for path in needs.writes) and all(
            _is_path_covered(self.deletes, path) for path in needs.deletes
        )

    def merge(self, other: "Manifest") -> "Manifest":
        """Return a manifest with the permissions of both; plan and cost limit stay."""
        return replace(
            self,
            programs=_union(self.programs, other.programs),
            hosts=_union(self.hosts, other.hosts),
            writes=_union(self.writes, other.writes),
            deletes=_union(self.deletes, other.deletes),
            tools=_union(self.tools, other.tools),
            secrets=_union(self.secrets, other.secrets),
        )

    def missing(self, needs: "Manifest") -> "Manifest":
        """Return the part of `needs` that this manifest does not grant."""
        return Manifest(
            programs=tuple(need for need in needs.programs if not self._covers_program(need)),
            hosts=tuple(host for host in needs.hosts if not self.covers_hosts((host,))),
            writes=tuple(path for path in needs.writes if not _is_path_covered(self.writes, path)),
            deletes=tuple(path for path in needs.deletes if not _is_path_covered(self.deletes, path)),
            tools=tuple(tool for tool in needs.tools if tool not in self.tools),
            secrets=tuple(name for name in needs.secrets if name not in self.secrets),
            max_usd=needs.max_usd if _exceeds(needs.max_usd, self.max_usd) else None,
        )

    def _covers_program(self, need: str) -> bool:
        return need in self.programs or any(covers_command(rule, need) for rule in self.programs)


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenManifest:
    """A manifest and the file it was read from."""

    manifest: Manifest
    path: Path


LISTS = tuple(field.name for field in fields(Manifest) if field.name not in ("plan", "max_usd"))


def needed_for(action: Action, verdict: Verdict, *, limits_network: bool = True) -> Manifest:
    """Return the smallest manifest for an action that needs approval; `limits_network` if a proxy enforces hosts."""
    match action.effect:
        case "web" if verdict.hosts:
            return Manifest(hosts=verdict.hosts)
        case "execute":
            is_host_enough = bool(verdict.hosts) and verdict.is_only_network and limits_network
            rules = tuple(dict.fromkeys(map(rule_for, verdict.commands_to_approve)))
            programs = () if is_host_enough else rules or (action.subject.strip(),)
            return Manifest(programs=programs, hosts=verdict.hosts)
        case "write":
            paths = action.paths or (action.subject,)
            kept = tuple(_relative(path, action.cwd) for path in paths if path not in action.deletes)
            return Manifest(writes=kept, deletes=tuple(_relative(path, action.cwd) for path in action.deletes))
        case _:
            return Manifest(tools=(action.tool,))


def merge_all(manifests: Iterable[Manifest]) -> Manifest:
    """Return one manifest with the permissions of all."""
    merged = Manifest()
    for manifest in manifests:
        merged = merged.merge(manifest)
    return merged


def _union(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*some, *others)))


def _exceeds(needed: float | None, limit: float | None) -> bool:
    return needed is not None and limit is not None and needed > limit


def _is_host_covered(rule: str, host: str) -> bool:
    return host == rule.removeprefix(".") or (rule.startswith(".") and host.endswith(rule))


def _relative(path: str, cwd: Path) -> str:
    """Return a path below the workspace, links resolved: a link must not lead out of an approved folder."""
    root, found = os.path.realpath(cwd), os.path.realpath(cwd / path)
    return os.path.relpath(found, root) if found == root or found.startswith(root + os.sep) else found


def _is_path_covered(patterns: Sequence[str], path: str) -> bool:
    return any(_matches_path(pattern, path) for pattern in patterns)


def _matches_path(pattern: str, path: str) -> bool:
    """Whether a path matches the pattern or is inside a matching folder; `*` stays within a folder, `**` does not."""
    if pattern == path:
        return True
    pattern = pattern.removeprefix("./").rstrip("/")
    if pattern in ("", ".", ANY_FILE):
        return not path.startswith("/")
    pieces = (_PIECES.get(part, re.escape(part)) for part in re.split(r"(\*\*|\*|\?)", pattern))
    return re.fullmatch("".join(pieces) + "(/.*)?", path, re.DOTALL) is not None


_PIECES = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
