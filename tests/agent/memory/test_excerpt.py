"""The excerpt for prompts is bounded and prefers the newest and most important lines."""

from hypothesis import given
from hypothesis import strategies as st

from agent.memory.excerpt import EXCERPT_CHARS, excerpt


def entries(tag: str, count: int, day: int, words: str = "something to be remembered for later") -> list[str]:
    return [f"- 2026-01-{day:02} {10 + n // 60}:{n % 60:02}: [{tag}] {words} {tag}{n}" for n in range(count)]


def test_a_small_memory_is_included_completely_without_empty_lines() -> None:
    assert excerpt("# Mine\n\n- 2026-01-01 10:00: [PREF] tabs\n") == "# Mine\n- 2026-01-01 10:00: [PREF] tabs"
    assert excerpt("") == excerpt("\n \n") == ""


def test_the_newest_preference_of_a_large_memory_is_included_wherever_it_is() -> None:
    filler = entries("DECISION", 70, 20) + entries("CONFIG", 70, 21)
    wanted = "- 2026-01-25 09:00: [PREF] answer in French"
    for place in (0, len(filler) // 2, len(filler)):
        text = "\n".join([*filler[:place], wanted, *filler[place:]])
        assert len(text) > 10_000
        shown = excerpt(text)
        assert wanted in shown.splitlines()
        assert len(shown) <= EXCERPT_CHARS


def test_many_preferences_leave_room_for_the_newest_other_entries() -> None:
    newest = "- 2026-01-30 08:00: [AGREEMENT] deploy on Fridays"
    shown = excerpt("\n".join([*entries("PREF", 200, 10), newest]))
    assert newest in shown and "PREF199" in shown and "PREF0\n" not in shown


def test_the_excerpt_keeps_the_order_of_the_file_and_mentions_omitted_lines() -> None:
    shown = excerpt("\n".join(entries("CONFIG", 200, 3))).splitlines()
    assert shown[:-1] == sorted(shown[:-1])
    assert "200 lines in all" in shown[-1]


def test_the_users_own_lines_are_included() -> None:
    assert "my cat is called Ada" in excerpt("\n".join([*entries("CONFIG", 100, 3), "my cat is called Ada"]))


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=5000), st.integers(min_value=100, max_value=3000))
def test_the_excerpt_never_exceeds_its_limit(text: str, limit: int) -> None:
    assert len(excerpt(text, limit)) <= limit
