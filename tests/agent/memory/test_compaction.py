"""A memory that is too large is shortened by a model or by priority; the user's own lines are never lost."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.memory.compaction import KB, REPLY_TRUNCATED, CompactionModel, CompactionResult, compact
from agent.memory.entries import TAGS, parse_lines
from agent.memory.memory_file import MemoryFile
from agent.memory.privacy import SECRET_FOUND
from agent.memory.shorten import (
    NO_PREFERENCES,
    NOT_ENTRIES,
    NOT_SHORTER,
    UNKNOWN_DATES,
    apply_reply,
    drop_by_priority,
)
from agent.model.faults import ModelFault
from agent.model.port import ModelReply, ModelRequest
from agent.vocabulary.message import Message
from agent.vocabulary.usage import Usage
from tooling.safety.secrets.redact import Redactor

PLAIN = Redactor()


def big_memory(size: int = 40 * KB, tags: tuple[str, ...] = TAGS) -> str:
    """Return a memory of entries with alternating tags and the user's lines between them."""
    lines = ["# Mine", ""]
    number = 0
    while sum(map(len, lines)) + len(lines) < size:
        tag = tags[number % len(tags)]
        stamp = f"2026-01-{1 + number // 1440:02} {number // 60 % 24:02}:{number % 60:02}"
        lines.append(f"- {stamp}: [{tag}] a thing to be remembered, the one with the number {number}")
        if number % 50 == 0:
            lines.append(f"a free note of the user, number {number}")
        number += 1
    return "\n".join([*lines, ""])


class OneReplyModel:
    """A model that gives one reply and stores its requests."""

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
    text: str, folder: Path, model: OneReplyModel | None = None, target_kb: int = 24
) -> tuple[CompactionResult, str]:
    memory = MemoryFile(folder)
    memory.path.write_text(text)
    shortener = CompactionModel(ask=model.ask, model="m", max_output_tokens=100, timeout_s=1) if model else None
    result = await compact(memory, target_kb, redactor=PLAIN, shortener=shortener)
    return result, memory.read()


def user_lines(text: str) -> list[str]:
    return [line.raw for line in parse_lines(text) if not line.is_entry]


def lines_with(text: str, part: str) -> list[str]:
    return [line for line in text.splitlines() if part in line]


async def test_without_a_model_the_least_important_entries_are_dropped_and_preferences_stay(tmp_path: Path) -> None:
    before = big_memory()
    result, after = await run_compaction(before, tmp_path)
    assert (result.before, result.after, result.by) == (len(before), len(after), "priority")
    assert result.after <= 24 * KB
    assert lines_with(after, "[PREF]") == lines_with(before, "[PREF]")
    assert lines_with(after, "[AGREEMENT]") == []
    assert lines_with(after, "[DECISION]")[-1] == lines_with(before, "[DECISION]")[-1]


async def test_the_users_lines_keep_their_order_and_a_backup_is_written(tmp_path: Path) -> None:
    before = big_memory()
    _, after = await run_compaction(before, tmp_path)
    assert user_lines(after) == user_lines(before)
    (copy,) = MemoryFile(tmp_path).backups
    assert copy.read_text() == before


async def test_preferences_alone_are_dropped_oldest_first(tmp_path: Path) -> None:
    before = big_memory(tags=("PREF",))
    result, after = await run_compaction(before, tmp_path)
    assert result.after <= 24 * KB
    kept = lines_with(after, "[PREF]")
    assert kept == lines_with(before, "[PREF]")[-len(kept) :]


async def test_the_users_lines_leave_room_for_entries(tmp_path: Path) -> None:
    prose = "\n".join(f"my own line number {number}, never to be touched" for number in range(1000))
    before = big_memory(10 * KB) + prose
    _, after = await run_compaction(before, tmp_path)
    assert prose in after
    assert 5 * KB < sum(len(line.raw) + 1 for line in parse_lines(after) if line.is_entry) <= 6 * KB


async def test_a_small_memory_is_not_compacted(tmp_path: Path) -> None:
    model = OneReplyModel("- 2026-01-01 00:00: [PREF] x")
    result, after = await run_compaction(big_memory(20 * KB), tmp_path, model)
    assert (result.by, after, model.requests, MemoryFile(tmp_path).backups) == ("nobody", big_memory(20 * KB), [], [])


async def test_the_models_entries_replace_the_old_ones(tmp_path: Path) -> None:
    before = big_memory()
    old = lines_with(before, "[PREF]")
    joined = "- 2026-01-01 00:04: [PREF] all of it in one"
    result, after = await run_compaction(before, tmp_path, OneReplyModel(f"{old[3]}\n{joined}\n"))
    assert result.by == "model"
    assert lines_with(after, "[") == [old[3], joined]
    assert [line for line in user_lines(after) if line] == [line for line in user_lines(before) if line]
    assert MemoryFile(tmp_path).backups[0].read_text() == before


async def test_the_model_sees_only_entries_and_no_secrets(tmp_path: Path) -> None:
    model = OneReplyModel("nothing useful")
    token = "ghp_" + "a1B2" * 9
    await run_compaction(f"- 2026-01-01 00:00: [CONFIG] {token}\nprivate prose\n{big_memory()}", tmp_path, model)
    (request,) = model.requests
    data = request.messages[-1].content
    assert request.purpose == "memory"
    assert data.startswith("<memory>\n- 2026-01-01 00:00: [CONFIG] [REDACTED]\n")
    assert "private prose" not in data and "a free note" not in data and data.endswith("\n</memory>")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("Here is the shorter memory:\n- 2026-01-01 00:00: [PREF] x", NOT_ENTRIES),
        ("- 2026-01-01 00:00: no tag", NOT_ENTRIES),
        ("- 2026-01-01 00:00: [NEWTAG] x", NOT_ENTRIES),
        ("{}", NOT_ENTRIES),
        (big_memory(50 * KB).replace("# Mine\n\n", ""), NOT_ENTRIES),
        ("- 2026-01-01 00:00: [PREF] " + "long " * 20_000, NOT_SHORTER),
        ("- 2026-01-01 00:00: [CONFIG] x", NO_PREFERENCES),
        ("- 2031-01-01 00:00: [PREF] x", UNKNOWN_DATES),
        ("- 2026-01-01 00:00: [PREF] ghp_" + "a1B2" * 9, SECRET_FOUND),
        (ModelFault("overloaded", "busy"), "overload"),
    ],
)
async def test_an_unusable_reply_is_rejected(reply: str | Exception, problem: str, tmp_path: Path) -> None:
    before = big_memory()
    result, after = await run_compaction(before, tmp_path, OneReplyModel(reply))
    assert result.by == "priority"
    assert problem in result.problem
    assert lines_with(after, "[PREF]") == lines_with(before, "[PREF]")


async def test_a_truncated_or_late_reply_is_rejected(tmp_path: Path) -> None:
    cut, _ = await run_compaction(
        big_memory(), tmp_path, OneReplyModel("- 2026-01-01 00:00: [PREF] x", finish_reason="length")
    )
    late, _ = await run_compaction(big_memory(), tmp_path, OneReplyModel("- 2026-01-01 00:00: [PREF] x", delay_s=5))
    assert (cut.problem, late.problem) == (REPLY_TRUNCATED, "no reply within 1 s")


async def test_a_reply_that_is_still_too_long_is_shortened_further(tmp_path: Path) -> None:
    before = big_memory()
    reply = "\n".join(line for line in lines_with(before, "[") if "[AGREEMENT]" not in line)
    result, after = await run_compaction(before, tmp_path, OneReplyModel(reply))
    assert result.by == "model"
    assert len(after) <= 24 * KB


async def test_entries_added_during_compaction_are_not_lost(tmp_path: Path) -> None:
    memory = MemoryFile(tmp_path)
    model = OneReplyModel("- 2026-01-01 00:00: [PREF] short")

    async def ask(request: ModelRequest) -> ModelReply:
        memory.append("model meanwhile", tag="AGREEMENT")
        return await model.ask(request)

    memory.path.write_text(big_memory())
    shortener = CompactionModel(ask=ask, model="m", max_output_tokens=100)
    await compact(memory, 24, redactor=PLAIN, shortener=shortener)
    assert "[PREF] short\n" in memory.read() and memory.read().endswith("[AGREEMENT] model meanwhile\n")


async def test_a_file_edited_during_compaction_is_shortened_by_priority(tmp_path: Path) -> None:
    memory = MemoryFile(tmp_path)

    async def ask(request: ModelRequest) -> ModelReply:
        memory.path.write_text("edited by hand\n" + big_memory())
        return await OneReplyModel("- 2026-01-01 00:00: [PREF] short").ask(request)

    memory.path.write_text(big_memory())
    await compact(memory, 24, redactor=PLAIN, shortener=CompactionModel(ask=ask, model="m", max_output_tokens=100))
    assert memory.read().startswith("edited by hand\n")
    assert lines_with(memory.read(), "[PREF]") == lines_with(big_memory(), "[PREF]")


def test_duplicate_entries_are_merged() -> None:
    text = "- 2026-01-01 00:00: [PREF] Tabs!\nmine\n- 2026-01-02 00:00: [PREF] tabs\n"
    assert drop_by_priority(text, 1000) == "mine\n- 2026-01-02 00:00: [PREF] tabs\n"


def test_a_fenced_reply_is_not_a_list_of_entries() -> None:
    text = "- 2026-01-01 00:00: [PREF] a longer line than the other\n"
    assert apply_reply(text, "```\n- 2026-01-01 00:00: [PREF] a\n```", PLAIN) == (
        text,
        NOT_ENTRIES,
    )


LINE = st.one_of(
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n"), max_size=60),
    st.builds("- 2026-01-01 00:00: [{}] {}".format, st.sampled_from(TAGS), st.text("abcdef ", min_size=3)),
)


@given(st.lists(LINE, max_size=40), st.integers(min_value=0, max_value=3000))
def test_no_line_of_the_user_is_ever_lost(lines: list[str], target: int) -> None:
    text = "\n".join([*lines, ""])
    after = drop_by_priority(text, target)
    assert user_lines(after) == user_lines(text)
    assert set(after.split("\n")) <= set(lines) | {""}
