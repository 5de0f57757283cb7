"""A memory that grew too large: shortened by a model or by priority, never at the cost of lines that are not ours."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.memory.compaction import KB, CompactionModel, CompactionResult, compact
from agent.memory.entries import TAGS, parse_lines
from agent.memory.memory_file import MemoryFile
from agent.memory.shorten import apply_reply, drop_by_priority
from agent.model.faults import ModelFault
from agent.model.port import ModelReply, ModelRequest
from agent.vocabulary.message import Message
from agent.vocabulary.usage import Usage
from tooling.safety.secrets.redact import Redactor

PLAIN = Redactor()


def big_memory(size: int = 40 * KB, tags: tuple[str, ...] = TAGS) -> str:
    """Return a memory of entries with every tag in turn, with a person's lines between them."""
    lines = ["# Mine", ""]
    number = 0
    while sum(map(len, lines)) + len(lines) < size:
        tag = tags[number % len(tags)]
        stamp = f"2026-01-{1 + number // 1440:02} {number // 60 % 24:02}:{number % 60:02}"
        lines.append(f"- {stamp}: [{tag}] a thing to be remembered, the one with the number {number}")
        if number % 50 == 0:
            lines.append(f"a free note of a person, number {number}")
        number += 1
    return "\n".join([*lines, ""])


class OneReplyModel:
    """A model that gives one reply, and remembers what it was asked."""

    def __init__(self, reply: str | Exception, *, finish_reason: str = "stop", delay_s: float = 0) -> None:
        self.reply = reply
        self.finish_reason = finish_reason
        self.delay_s = delay_s
        self.requests: list[ModelRequest] = []

    async def ask(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        await asyncio.sleep(self.delay_s)
        if isinstance(self.reply, Exception):
            raise self.reply
        message = Message(role="assistant", content=self.reply)
        return ModelReply(message=message, usage=Usage(), model="m", finish_reason=self.finish_reason)


async def run_compaction(
    text: str, folder: Path, said: OneReplyModel | None = None, target_kb: int = 24
) -> tuple[CompactionResult, str]:
    memory = MemoryFile(folder)
    memory.path.write_text(text)
    shortener = CompactionModel(ask=said.ask, model="m", max_output_tokens=100, timeout_s=1) if said else None
    done = await compact(memory, target_kb, redactor=PLAIN, shortener=shortener)
    return done, memory.read()


def user_lines(text: str) -> list[str]:
    return [line.raw for line in parse_lines(text) if not line.is_entry]


def lines_with(text: str, sign: str) -> list[str]:
    return [line for line in text.splitlines() if sign in line]


async def test_without_a_model_the_least_important_goes_first_and_every_preference_stays(tmp_path: Path) -> None:
    before = big_memory()
    done, after = await run_compaction(before, tmp_path)
    assert (done.before, done.after, done.by) == (len(before), len(after), "priority")
    assert done.after <= 24 * KB
    assert lines_with(after, "[PREF]") == lines_with(before, "[PREF]")
    assert lines_with(after, "[AGREEMENT]") == []
    assert lines_with(after, "[DECISION]")[-1] == lines_with(before, "[DECISION]")[-1]


async def test_lines_that_are_not_ours_survive_in_their_order_and_a_copy_is_kept(tmp_path: Path) -> None:
    before = big_memory()
    _, after = await run_compaction(before, tmp_path)
    assert user_lines(after) == user_lines(before)
    (copy,) = MemoryFile(tmp_path).backups
    assert copy.read_text() == before


async def test_even_preferences_alone_are_brought_down_the_oldest_first(tmp_path: Path) -> None:
    before = big_memory(tags=("PREF",))
    done, after = await run_compaction(before, tmp_path)
    assert done.after <= 24 * KB
    kept = lines_with(after, "[PREF]")
    assert kept == lines_with(before, "[PREF]")[-len(kept) :]


async def test_a_persons_own_lines_do_not_push_everything_else_out(tmp_path: Path) -> None:
    prose = "\n".join(f"my own line number {number}, never to be touched" for number in range(1000))
    before = big_memory(10 * KB) + prose
    _, after = await run_compaction(before, tmp_path)
    assert prose in after
    assert 5 * KB < sum(len(line.raw) + 1 for line in parse_lines(after) if line.is_entry) <= 6 * KB


async def test_what_is_small_enough_is_left_alone(tmp_path: Path) -> None:
    said = OneReplyModel("- 2026-01-01 00:00: [PREF] x")
    done, after = await run_compaction(big_memory(20 * KB), tmp_path, said)
    assert (done.by, after, said.requests, MemoryFile(tmp_path).backups) == ("nobody", big_memory(20 * KB), [], [])


async def test_the_models_entries_take_the_place_of_the_old_ones(tmp_path: Path) -> None:
    before = big_memory()
    old = lines_with(before, "[PREF]")
    joined = "- 2026-01-01 00:04: [PREF] all of it in one"
    done, after = await run_compaction(before, tmp_path, OneReplyModel(f"{old[3]}\n{joined}\n"))
    assert done.by == "model"
    assert lines_with(after, "[") == [old[3], joined]
    assert [line for line in user_lines(after) if line] == [line for line in user_lines(before) if line]
    assert MemoryFile(tmp_path).backups[0].read_text() == before


async def test_the_model_sees_entries_alone_as_data_without_secrets(tmp_path: Path) -> None:
    said = OneReplyModel("nothing useful")
    token = "ghp_" + "a1B2" * 9
    await run_compaction(f"- 2026-01-01 00:00: [CONFIG] {token}\nprivate prose\n{big_memory()}", tmp_path, said)
    (asked,) = said.requests
    data = asked.messages[-1].content
    assert asked.purpose == "memory"
    assert data.startswith("<memory>\n- 2026-01-01 00:00: [CONFIG] [REDACTED]\n")
    assert "private prose" not in data and "a free note" not in data and data.endswith("\n</memory>")


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("Here is the shorter memory:\n- 2026-01-01 00:00: [PREF] x", "form"),
        ("- 2026-01-01 00:00: no tag", "form"),
        ("- 2026-01-01 00:00: [NEWTAG] x", "form"),
        ("{}", "form"),
        (big_memory(50 * KB).replace("# Mine\n\n", ""), "form"),
        ("- 2026-01-01 00:00: [PREF] " + "long " * 20_000, "not shorter"),
        ("- 2026-01-01 00:00: [CONFIG] x", "lost every preference"),
        ("- 2031-01-01 00:00: [PREF] x", "dates of its own"),
        ("- 2026-01-01 00:00: [PREF] ghp_" + "a1B2" * 9, "key or token"),
        (ModelFault("overloaded", "busy"), "overload"),
    ],
)
async def test_a_reply_that_will_not_do_is_not_believed(reply: str | Exception, why: str, tmp_path: Path) -> None:
    before = big_memory()
    done, after = await run_compaction(before, tmp_path, OneReplyModel(reply))
    assert done.by == "priority"
    assert why in done.problem
    assert lines_with(after, "[PREF]") == lines_with(before, "[PREF]")


async def test_a_reply_that_was_cut_off_or_never_came_is_not_believed(tmp_path: Path) -> None:
    cut, _ = await run_compaction(
        big_memory(), tmp_path, OneReplyModel("- 2026-01-01 00:00: [PREF] x", finish_reason="length")
    )
    late, _ = await run_compaction(big_memory(), tmp_path, OneReplyModel("- 2026-01-01 00:00: [PREF] x", delay_s=5))
    assert (cut.problem, late.problem) == ("the reply was cut off", "no reply within 1 s")


async def test_a_reply_that_is_still_too_long_is_shortened_further(tmp_path: Path) -> None:
    before = big_memory()
    reply = "\n".join(line for line in lines_with(before, "[") if "[AGREEMENT]" not in line)
    done, after = await run_compaction(before, tmp_path, OneReplyModel(reply))
    assert done.by == "model"
    assert len(after) <= 24 * KB


async def test_what_others_remember_while_the_model_thinks_is_not_lost(tmp_path: Path) -> None:
    memory = MemoryFile(tmp_path)
    said = OneReplyModel("- 2026-01-01 00:00: [PREF] short")

    async def ask(request: ModelRequest) -> ModelReply:
        memory.append("said meanwhile", tag="AGREEMENT")
        return await said.ask(request)

    memory.path.write_text(big_memory())
    shortener = CompactionModel(ask=ask, model="m", max_output_tokens=100)
    await compact(memory, 24, redactor=PLAIN, shortener=shortener)
    assert "[PREF] short\n" in memory.read() and memory.read().endswith("[AGREEMENT] said meanwhile\n")


async def test_a_file_that_was_edited_while_the_model_thought_is_shortened_as_it_is(tmp_path: Path) -> None:
    memory = MemoryFile(tmp_path)

    async def ask(request: ModelRequest) -> ModelReply:
        memory.path.write_text("edited by hand\n" + big_memory())
        return await OneReplyModel("- 2026-01-01 00:00: [PREF] short").ask(request)

    memory.path.write_text(big_memory())
    await compact(memory, 24, redactor=PLAIN, shortener=CompactionModel(ask=ask, model="m", max_output_tokens=100))
    assert memory.read().startswith("edited by hand\n")
    assert lines_with(memory.read(), "[PREF]") == lines_with(big_memory(), "[PREF]")


def test_entries_that_say_the_same_are_one() -> None:
    text = "- 2026-01-01 00:00: [PREF] Tabs!\nmine\n- 2026-01-02 00:00: [PREF] tabs\n"
    assert drop_by_priority(text, 1000) == "mine\n- 2026-01-02 00:00: [PREF] tabs\n"


def test_a_fenced_list_is_no_list_of_entries() -> None:
    text = "- 2026-01-01 00:00: [PREF] a longer line than the other\n"
    assert apply_reply(text, "```\n- 2026-01-01 00:00: [PREF] a\n```", PLAIN) == (
        text,
        "the reply is not in the form of entries",
    )


LINE = st.one_of(
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n"), max_size=60),
    st.builds("- 2026-01-01 00:00: [{}] {}".format, st.sampled_from(TAGS), st.text("abcdef ", min_size=3)),
)


@given(st.lists(LINE, max_size=40), st.integers(min_value=0, max_value=3000))
def test_no_line_of_a_person_is_ever_lost(lines: list[str], target: int) -> None:
    text = "\n".join([*lines, ""])
    after = drop_by_priority(text, target)
    assert user_lines(after) == user_lines(text)
    assert set(after.split("\n")) <= set(lines) | {""}
