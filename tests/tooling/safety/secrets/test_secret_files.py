"""Values in secret files are masked in the output of commands, however a command gets at them."""

import base64
import os
import re
from pathlib import Path

import pytest

from tests.growth import assert_linear
from tests.tooling.tool_harness import ToolHarness
from tooling.approvals.policy import PolicyApprover
from tooling.safety.secrets import secret_files
from tooling.safety.secrets.dumps import find_spread
from tooling.safety.secrets.redact import Redactor, encoded_forms
from tooling.safety.secrets.secret_files import SecretFileFinder, SecretFiles, secret_values

KEY = "Xk29-vLq0_Zt7bMw41"
ENV = f"PORT=3000\nNODE_ENV=production\nAPI_KEY={KEY}\nDATABASE_URL=postgres://me:pa55-word-9@db:5432/app\n"


@pytest.fixture
def project(tmp_path: Path) -> ToolHarness:
    harness = ToolHarness(tmp_path, approver=PolicyApprover(mode="yolo"))
    harness.write(".env", ENV)
    harness.write("conf/prod.env", f'export STRIPE_SECRET="{KEY[::2]}-second"\n')
    harness.write("app.py", "print('production on 3000')\n")
    return harness


@pytest.mark.parametrize(
    "command",
    [
        *("grep -rh API_KEY --include='*.env' .", "cat .e*v", "for f in .env; do cat $f; done", "rev .env", "tac .env"),
        *("base64 .env", "base64 -w0 .env", "python3 -c 'print(open(chr(46)+\"env\").read())'", "sort .env"),
    ],
)
async def test_a_command_that_reads_a_secret_file_shows_masks(command: str, project: ToolHarness) -> None:
    shown = (await project.call("run_command", command=command)).content
    assert KEY not in shown
    assert KEY[::-1] not in shown
    assert base64.b64encode(KEY.encode()).decode()[:20] not in shown
    assert "[REDACTED]" in shown


@pytest.mark.parametrize("command", ["od -A x -t x1z .env", "od -A x -t x2 .env", "od -A x -t x1 -w8 .env"])
async def test_a_dump_of_a_secret_file_is_masked_as_a_whole(command: str, project: ToolHarness) -> None:
    shown = (await project.call("run_command", command=command)).content
    assert "[REDACTED]" in shown
    assert KEY[:4].encode().hex() not in shown.replace(" ", "")


@pytest.mark.parametrize(
    "command",
    [
        *("od -c .env", "od -An -c .env", "od -An -tx1 .env", "od -An -v -tx1 -w1 .env", "fold -w 5 .env"),
        *("base64 -w 20 .env", "base64 -w 7 .env", "sed 's/./& /g' .env", "grep -o . .env"),
        *(f"python3 -c \"print(open('.env','rb').read().hex('{between}'))\"" for between in " :,"),
        "python3 -c \"print(*map(hex, open('.env','rb').read()), sep=', ')\"",
    ],
)
async def test_a_value_spread_over_lines_columns_or_numbers_is_masked(command: str, project: ToolHarness) -> None:
    shown = (await project.call("run_command", command=command)).content
    squeezed = re.sub(r"0x|(?m:^\d{7}\s)|[\s,:]", "", shown)
    forms = (KEY, KEY.encode().hex(), *(base64.b64encode(b" " * pad + KEY.encode()).decode()[4:20] for pad in range(3)))
    assert ([form for form in forms if form in squeezed], "[REDACTED]" in shown) == ([], True)


def test_finding_spread_values_takes_linear_time() -> None:
    forms = {form for number in range(50) for form in encoded_forms(f"{KEY}{number}")}
    assert_linear(lambda size: find_spread("5a 71\n0x4c, " * size, forms), 20_000)
    spread = " ".join(f"{KEY}1")
    for blank in (" ", "\n", " \n", ", "):
        assert_linear(lambda size, blank=blank: find_spread(f"{spread} X{blank * size}X", forms), 20_000)


async def test_other_output_is_not_masked(project: ToolHarness) -> None:
    shown = (await project.call("run_command", command="python3 app.py; echo postgres production 3000")).content
    assert "[REDACTED]" not in shown


async def test_a_secret_file_written_later_is_read_before_the_next_command(project: ToolHarness) -> None:
    project.write("sub/.env.local", "SESSION_TOKEN=later-Value-77\n")
    assert "later-Value-77" not in (await project.call("run_command", command="cat sub/.env.l*")).content


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        (".env", ENV, [KEY, "pa55-word-9"]),
        (".env", "DEBUG=true\nPASSWORD=postgres\nHOST=localhost\nTOKEN=\n", []),
        ("credentials.json", '{"client_secret": "a1-B2-c3-D4", "name": "my-project"}', ["a1-B2-c3-D4"]),
        ("secrets.yaml", "db:\n  password: hunter2-hunter2\n", ["hunter2-hunter2"]),
        (".netrc", "machine h login me password s3cret-pw\n", ["s3cret-pw"]),
        (".pgpass", "h:5432:db:me:s3cret-pw\n", ["s3cret-pw"]),
        (".npmrc", "//r.example/:_authToken=npm-1234567-Z\n", ["npm-1234567-Z"]),
        ("id_rsa", "-----BEGIN KEY-----\n" + "Ab1+" * 16 + "\n-----END KEY-----\n", ["Ab1+" * 16]),
        (".env", 'APP_SECRET="first-Part99\nsecond-Part99"\nPORT=1\n', ["first-Part99", "second-Part99"]),
        (".env", "export APP_KEY='one-Part11\n\ntwo-Part22\n'\n", ["one-Part11", "two-Part22"]),
    ],
)
def test_values_are_secret_by_their_key_or_their_look(name: str, text: str, values: list[str]) -> None:
    assert secret_values(name, text) == values


def test_the_search_for_secret_files_is_bounded(tmp_path: Path) -> None:
    for name in ("a/.env", "node_modules/x/.env", "a/.env.example"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("A_KEY=abc-123-DEF\n")
    assert SecretFileFinder().find((tmp_path,)) == [tmp_path / "a/.env"]
    redactor = Redactor()
    SecretFiles(redactor).learn((tmp_path, tmp_path / "missing"))
    assert redactor.redact("abc-123-DEF") == "[REDACTED]"


def test_a_folder_is_listed_again_only_if_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_files, "_TICK_NS", -1)
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: (listed.append(Path(folder).name), scandir(folder))[1])
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "b/link.env").symlink_to("target")
    finder = SecretFileFinder()
    assert finder.find((tmp_path,)) == [tmp_path / "b/link.env"]
    listed.clear()
    before = (tmp_path / "a").stat().st_ctime_ns
    while (tmp_path / "a").stat().st_ctime_ns == before:
        # Until the clock of the file system ticks.
        (tmp_path / "a/.env").unlink(missing_ok=True)
        (tmp_path / "a/.env").touch()
    assert sorted(finder.find((tmp_path,))) == [tmp_path / "a/.env", tmp_path / "b/link.env"]
    assert listed == ["a"]
    # What a link leads to may appear at any time, without a change of its folder.
    (tmp_path / "b/target").write_text("A_KEY=abc-123-DEF\n")
    redactor = Redactor()
    learning = SecretFiles(redactor)
    learning.learn((tmp_path,))
    assert redactor.redact("abc-123-DEF") == "[REDACTED]"
