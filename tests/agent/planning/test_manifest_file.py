"""Manifest files: what is written is read back, and everything that is not understood is refused."""

import json
from pathlib import Path

import pytest

from agent.planning.manifest_file import (
    HINT,
    ManifestError,
    change_for,
    json_manifest,
    parse_manifest,
    read_manifest,
    toml_manifest,
)
from agent.planning.plan_text import plan_hash
from agent.vocabulary.plan import PlanStep
from tooling.approvals.manifest import Manifest

FULL = Manifest(
    plan="sha256:00",
    programs=("git push", "make -C 'a b'", 'echo "x"\nls'),
    hosts=("example.org", ".example.net"),
    writes=("src/**",),
    deletes=("build/",),
    tools=("memory",),
    secrets=("OPENAI_API_KEY",),
    max_usd=1.5,
)


@pytest.mark.parametrize("manifest", [Manifest(), FULL])
def test_what_is_written_is_read_back(manifest: Manifest) -> None:
    assert parse_manifest(toml_manifest(manifest, head=("a comment",)), name="m.toml") == manifest
    assert parse_manifest(toml_manifest(manifest, is_commented=False), name="m.toml") == manifest
    assert parse_manifest(json_manifest(manifest), name="m.json") == manifest


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is no version; this program reads version = 1"),
        ("version = 2", "version 2 is unknown; this program reads version = 1"),
        ("version = true", "version True is unknown; this program reads version = 1"),
        ("version = 1\nprogram = []", "unknown field program, did you mean programs?"),
        ("version = 1\nprograms = 'git'", "programs: expected a list, got text"),
        ("version = 1\nprograms = [1]", "programs[0]: expected text, got number 1"),
        ("version = 1\nprograms = ['']", "programs has an empty entry"),
        ("version = 1\nhosts = ['10.0.0.1']", "'10.0.0.1' is an IP address; only host names can be allowed or denied"),
        ("version = 1\nmax_usd = -1", "max_usd: expected an amount in USD, got -1.0"),
        ("version = 1\nmax_usd = inf", "max_usd: expected an amount in USD, got inf"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_manifest(text, name="m.toml")
    assert (caught.value.message, caught.value.hint) == (f"m.toml: {problem}", HINT)


@pytest.mark.parametrize("text", ["version = ", '{"version": 1, "version": 1}', "{", "[1]" * 3])
def test_a_broken_file_is_refused(text: str) -> None:
    with pytest.raises(ManifestError):
        parse_manifest(text, name="m")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot read the manifest"):
        read_manifest(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(ManifestError, match="not UTF-8"):
        read_manifest(tmp_path / "bytes.toml")


def test_the_change_shows_complete_lines_that_can_be_pasted() -> None:
    missing = Manifest(programs=("npm publish",), hosts=("b.net",), max_usd=2.0)
    lines = change_for(Manifest(programs=("git push",), max_usd=1.0), missing)
    assert lines == 'programs = [\n  "git push",\n  "npm publish",\n]\nhosts = [\n  "b.net",\n]\nmax_usd = 2'
    assert parse_manifest(f"version = 1\n{lines}", name="m").programs == ("git push", "npm publish")


def test_the_hash_of_a_plan_does_not_depend_on_its_estimates() -> None:
    step = PlanStep(id="a", title="A", instruction="do a")
    assert plan_hash([step]) == plan_hash([PlanStep(id="a", title="A", instruction="do a", est_usd=1.0)])
    assert plan_hash([step]) != plan_hash([PlanStep(id="a", title="A", instruction="do b")])


def test_json_leaves_out_what_says_nothing() -> None:
    assert json.loads(json_manifest(Manifest(programs=("ls",)))) == {"version": 1, "programs": ["ls"]}
