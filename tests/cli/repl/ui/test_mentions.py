"""`@path`: mentioned files and folders are attached and named, or the user is told why not."""

import os
from pathlib import Path

import pytest

from agent.workspace.request_context import read_attachment
from cli.repl.mentions import (
    NO_FILE,
    NOT_TEXT,
    SECRETS,
    Mentions,
    find_mentions,
    image_mentions,
    mention,
    mention_at_cursor,
)
from tests.tooling.images.sample_images import png


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    (tmp_path / "other").mkdir()
    for name in ("project/a.txt", "project/.env", "other/log.txt", "other/id_rsa"):
        (tmp_path / name).write_text("text")
    return tmp_path / "project"


def test_mentioned_files_are_attached_once(folder: Path) -> None:
    mentions = find_mentions(f"compare @a.txt with @a.txt and @../other/log.txt, mail me@a.txt, {folder}/a.txt", folder)
    assert (mentions.files, mentions.problems) == ((folder / "a.txt", folder / "../other/log.txt"), ())


def test_a_mention_may_be_quoted_and_may_end_a_sentence(folder: Path) -> None:
    (folder / "my shot.png").write_bytes(png())
    for request in ("what is in @a.txt?", "(see @a.txt)", 'look at @"a.txt"', "@'a.txt': why?"):
        assert find_mentions(request, folder).files == (folder / "a.txt",)
    assert find_mentions('what is in @"my shot.png"?', folder).files == (folder / "my shot.png",)


@pytest.mark.parametrize(
    ("pasted", "typed"),
    [
        ("{}/shot.png", "@{}/shot.png "),
        ("{}/shot.png\n", "@{}/shot.png "),
        ("'{}/my shot.png' ", '@"{}/my shot.png" '),
        ("{}/my\\ shot.png", '@"{}/my shot.png" '),
        ("file://{}/my%20shot.png", '@"{}/my shot.png" '),
        ("{}/shot.png {}/my\\ shot.png", '@{}/shot.png @"{}/my shot.png" '),
        ("look at {}/shot.png", None),
        ("{}/a.txt", None),
        ("{}/missing.png", None),
        ("shot.png", None),
        ("it's", None),
        ("", None),
    ],
)
def test_a_dragged_image_becomes_a_mention(folder: Path, pasted: str, typed: str | None) -> None:
    for name in ("shot.png", "my shot.png"):
        (folder / name).write_bytes(png())
    assert image_mentions(pasted.replace("{}", str(folder))) == (typed and typed.replace("{}", str(folder)))


@pytest.mark.parametrize("name", [".env", "../other/id_rsa", "ABSOLUTE"])
def test_a_file_with_secrets_is_not_attached(folder: Path, name: str) -> None:
    name = str(folder.parent / "other" / "id_rsa") if name == "ABSOLUTE" else name
    mentions = find_mentions(f"text from a page\n@{name}", folder)
    assert mentions.files == ()
    assert SECRETS in mentions.problems[0]


@pytest.mark.parametrize("target", ["other/log.txt", "other/id_rsa"])
def test_a_link_out_of_the_folder_is_not_followed(folder: Path, target: str) -> None:
    (folder / "notes.md").symlink_to(folder.parent / target)
    (folder / "docs").symlink_to(folder.parent / "other")
    for name in ("notes.md", f"docs/{Path(target).name}"):
        mentions = find_mentions(f"read @{name}", folder)
        assert (mentions.files, len(mentions.problems)) == ((), 1)


@pytest.mark.parametrize(
    "request_text",
    [
        "what is in @a.txt?",
        "@a.txt, please",
        "(@a.txt)",
        "[@a.txt].",
        '"@a.txt"',
        "see `@a.txt`",
        "@a.txt:12 is wrong",
        "@a.txt's end",
        "@a.txt...",
        "compare (@a.txt,@missing)",
    ],
)
def test_punctuation_and_brackets_around_a_mention_do_not_matter(folder: Path, request_text: str) -> None:
    assert find_mentions(request_text, folder).files == (folder / "a.txt",)


def test_names_with_spaces_are_quoted_or_escaped(folder: Path) -> None:
    (folder / "my file.txt").write_text("one\n")
    for request in ('@"my file.txt"', "@'my file.txt',", "read @my\\ file.txt"):
        assert find_mentions(request, folder).files == (folder / "my file.txt",)
    assert find_mentions("read @my file.txt", folder).problems == (
        f'@my not attached: {NO_FILE}; quote a name with spaces: @"my file.txt"',
    )
    assert mention("my file.txt") == '@"my file.txt"'


def test_what_is_attached_is_told_with_its_size(folder: Path) -> None:
    (folder / "long.txt").write_text("line of text\n" * 200)
    (folder / "src").mkdir()
    (folder / "src" / "main.py").touch()
    mentions = find_mentions("@a.txt @long.txt @src/ @src", folder)
    assert mentions.attached == ("a.txt (4 B, 1 line)", "long.txt (2.6 kB, 200 lines)", "src/ (folder, 1 entry)")
    assert mentions.files == (folder / "a.txt", folder / "long.txt", folder / "src")
    assert read_attachment(folder / "src").text == "main.py"


def test_a_missing_file_is_told(folder: Path) -> None:
    mentions = find_mentions("fix @mising.py, then @docs/nowhere/.", folder)
    assert mentions.problems == (
        f"@mising.py not attached: {NO_FILE}",
        f"@docs/nowhere/ not attached: {NO_FILE}",
    )
    many = find_mentions(" ".join(f"@user{number}" for number in range(20)), folder)
    assert len(many.problems) == 4 and "17 more" in many.problems[-1]


def test_a_file_or_folder_that_cannot_be_read_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    (folder / "src").mkdir()
    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "scandir", refuse)
    assert find_mentions("@a.txt @src", folder).problems == (
        "@a.txt not attached: Permission denied",
        "@src not attached: Permission denied",
    )


def test_a_file_that_cannot_be_attached_does_not_stop_the_request(folder: Path) -> None:
    (folder / "data.bin").write_bytes(b"a\0b")
    (folder / "huge.log").write_bytes(b"x" * 1_000_001)
    mentions = find_mentions("@data.bin @huge.log", folder)
    assert mentions.files == ()
    assert [problem.partition(" not attached: ")[2][:14] for problem in mentions.problems] == [
        NOT_TEXT[:14],
        "it is larger t",
    ]


@pytest.mark.parametrize(
    "request_text",
    [
        "write to me@example.org or to first.last+x@example.org",
        "why?\n\n@dataclass\nclass A: ...",
        "@app.route('/x')\ndef view(): ...",
        "    @Override\n    public void run()",
        "what does `@property` do",
        "```py\n@cache\n\nx = 1\n```",
        "@@ -1,2 +1,2 @@",
        "git log @{u}..",
        "https://example.org/@user/post",
    ],
)
def test_addresses_and_decorators_are_no_mentions(folder: Path, request_text: str) -> None:
    assert find_mentions(request_text, folder) == Mentions()


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("read @al", ("al", 3)),
        ("(@al", ("al", 3)),
        ('read @"my sh', ("my sh", 7)),
        ("read @my\\ sh", ("my sh", 7)),
        ('read @"my shot.png"', None),
        ("me@al", None),
        ("read @al ", None),
    ],
)
def test_completion_and_attaching_read_a_mention_alike(text: str, typed: tuple[str, int] | None) -> None:
    assert mention_at_cursor(text) == typed


def test_a_mention_that_is_not_a_file_is_plain_text(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "zeros").symlink_to("/dev/zero")
    (folder / "loop").symlink_to("loop")
    words = f"@pipe @zeros @loop @/dev/stdin @missing @{'a' * 5000} @a\0b @{chr(0xDCFF)}"
    assert find_mentions(words, folder).files == ()
