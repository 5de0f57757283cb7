"""`@path`: mentioned files are attached, except secrets and links out of the folder."""

import os
from pathlib import Path

import pytest

from cli.repl.input import SECRETS, find_mentions, image_mentions
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
    assert (mentions.files, mentions.refused) == ((folder / "a.txt", folder / "../other/log.txt"), ())


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
    assert SECRETS in mentions.refused[0]


@pytest.mark.parametrize("target", ["other/log.txt", "other/id_rsa"])
def test_a_link_out_of_the_folder_is_not_followed(folder: Path, target: str) -> None:
    (folder / "notes.md").symlink_to(folder.parent / target)
    (folder / "docs").symlink_to(folder.parent / "other")
    for name in ("notes.md", f"docs/{Path(target).name}"):
        mentions = find_mentions(f"read @{name}", folder)
        assert (mentions.files, len(mentions.refused)) == ((), 1)


def test_a_mention_that_is_not_a_file_is_plain_text(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "zeros").symlink_to("/dev/zero")
    (folder / "loop").symlink_to("loop")
    words = f"@pipe @zeros @loop @/dev/stdin @missing @{'a' * 5000} @a\0b @. @{chr(0xDCFF)}"
    assert find_mentions(words, folder).files == ()
