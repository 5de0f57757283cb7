"""Which paths tools may use."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tooling.tool_harness import TASK, USER, ToolHarness
from tooling.contract.context import ExecCtx
from tooling.files.sensitive_files import SENSITIVE_FILES, SENSITIVE_PATTERNS, is_sensitive_file
from tooling.files.workspace_paths import PathRefused, readable_path, writable_path


@pytest.mark.parametrize("path", ["a.txt", "./a.txt", "sub/../a.txt", "new/folder/file", "."])
def test_paths_inside_are_allowed(harness: ToolHarness, path: str) -> None:
    assert str(writable_path(path, harness.ctx())).startswith(str(harness.root))


@pytest.mark.parametrize(
    "path",
    ["", " ", "../x", "/etc/passwd", "a/../../x", "sub/../../ws-evil/x", "a\0b", "~/../../x/../../.."],
)
def test_paths_outside_are_refused(harness: ToolHarness, path: str) -> None:
    with pytest.raises(PathRefused, match="BLOCKED"):
        writable_path(path, harness.ctx())


def test_a_folder_with_the_same_prefix_is_outside(harness: ToolHarness) -> None:
    evil = harness.root.with_name("ws-evil")
    evil.mkdir()
    with pytest.raises(PathRefused):
        readable_path(str(evil / "x"), harness.ctx())


def test_absolute_paths_inside_and_extra_folders_are_allowed(harness: ToolHarness, tmp_path: Path) -> None:
    assert readable_path(str(harness.root / "a"), harness.ctx()) == harness.root / "a"
    assert writable_path(str(tmp_path / "more" / "a"), harness.ctx(extra_dirs=(tmp_path / "more",)))


def test_links_outside_are_refused_even_for_new_files(harness: ToolHarness, tmp_path: Path) -> None:
    (harness.root / "out").symlink_to(tmp_path)
    (harness.root / "loop").symlink_to("loop")
    for path in ("out/secret.txt", "out", "loop/x"):
        with pytest.raises(PathRefused):
            writable_path(path, harness.ctx())


def test_links_inside_are_followed(harness: ToolHarness) -> None:
    harness.write("real/a.txt", "x")
    (harness.root / "alias").symlink_to("real")
    assert readable_path("alias/a.txt", harness.ctx()) == harness.root / "real" / "a.txt"


def test_saved_outputs_are_read_only(harness: ToolHarness) -> None:
    path = str(harness.outputs / "call1.txt")
    assert readable_path(path, harness.ctx())
    with pytest.raises(PathRefused):
        writable_path(path, harness.ctx())


@given(st.lists(st.sampled_from(["..", ".", "a", "b", "link", "ws", "ws-evil", "etc", ""]), max_size=8), st.booleans())
def test_an_allowed_path_is_inside_the_workspace(parts: list[str], absolute: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "ws"
        root.mkdir()
        (root / "link").symlink_to("..")
        ctx = ExecCtx(user_id=USER, task_id=TASK, working_dir=root)
        path = ("/" if absolute else "") + "/".join(parts)
        try:
            found = writable_path(path, ctx)
        except PathRefused:
            return
        assert os.path.commonpath([os.path.realpath(found), root]) == str(root)


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        ".ENV",
        "config/.env.production",
        ".netrc",
        ".npmrc",
        ".aws/credentials",
        ".aws/config",
        "home/.docker/config.json",
        ".git-credentials",
        "kubeconfig",
        ".kube/config",
        "id_rsa",
        "keys/id_ed25519",
        "server.pem",
        "tls.KEY",
        "cert.p12",
        "secrets.yaml",
        "my-service-account.json",
        "prod.credentials.json",
        "private_key",
        "token.json",
        "prod.env",
        "terraform.tfstate",
        "gha-creds-0f3c.json",
        "my-app-firebase-adminsdk-x1.json",
        "office.ovpn",
        ".config/gh/hosts.yml",
        ".ssh/id_ecdsa_sk",
        "api_token",
    ],
)
def test_files_with_secrets_are_recognized(path: str) -> None:
    assert is_sensitive_file(path)


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        "example.env",
        "environment",
        "firebase.json",
        "main.tf",
        "private_key_test.py",
        "id_rsa.pub",
        "environment.py",
        "config.json",
        "tokenizer.json",
        "credentials_test.py",
        "secrets.py",
        "keyboard.txt",
        "README.md",
        "monkey.key.md",
        "",
    ],
)
def test_ordinary_files_are_not_sensitive(path: str) -> None:
    assert not is_sensitive_file(path)


def test_the_lists_are_not_empty() -> None:
    assert ".env" in SENSITIVE_FILES
    assert len(SENSITIVE_PATTERNS) >= 8


async def test_tools_refuse_files_with_secrets_even_through_links(harness: ToolHarness) -> None:
    harness.write(".env", "KEY=1")
    (harness.root / "harmless.txt").symlink_to(".env")
    for tool, args in (
        ("read_file", {"path": ".env"}),
        ("read_file", {"path": "harmless.txt"}),
        ("write_file", {"path": ".env", "content": "x"}),
        ("edit_file", {"path": "harmless.txt", "old_text": "KEY", "new_text": "x"}),
    ):
        result = await harness.call(tool, **args)
        assert (result.meta.status, result.exit_code) == ("blocked", 126)
        assert "KEY" not in result.content
    assert (harness.root / ".env").read_text() == "KEY=1"
