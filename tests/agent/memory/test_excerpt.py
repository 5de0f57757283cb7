"""What prompts are given of a memory: bounded, the newest and the most important."""

from hypothesis import given
from hypothesis import strategies as st

from agent.memory.excerpt import EXCERPT_CHARS, excerpt


def entries(tag: str, count: int, day: int, words: str = "something to be remembered for later") -> list[str]:
    return [f"- 2026-01-{day:02} {10 + n // 60}:{n % 60:02}: [{tag}] {words} {tag}{n}" for n in range(count)]


def test_a_small_memory_is_given_whole_without_empty_lines() -> None:
    assert excerpt("# Mine\n\n- 2026-01-01 10:00: [PREF] tabs\n") == "# Mine\n- 2026-01-01 10:00: [PREF] tabs"
    assert excerpt("") == excerpt("\n \n") == ""


def test_of_ten_kilobytes_the_newest_preference_is_given_wherever_it_stands() -> None:
    filler = entries("DECISION", 70, 20) + entries("CONFIG", 70, 21)
    wanted = "- 2026-01-25 09:00: [PREF] answer in French"
    for place in (0, len(filler) // 2, len(filler)):
        text = "\n".join([*filler[:place], wanted, *filler[place:]])
        assert len(text) > 10_000
        shown = excerpt(text)
        assert wanted in shown.splitlines()
        assert len(shown) <= EXCERPT_CHARS


def test_the_newest_of_the_rest_has_room_beside_many_preferences() -> None:
    newest = "- 2026-01-30 08:00: [AGREEMENT] deploy on Fridays"
    shown = excerpt("\n".join([*entries("PREF", 200, 10), newest]))
    assert newest in shown and "PREF199" in shown and "PREF0\n" not in shown


def test_the_order_of_the_file_is_kept_and_what_is_missing_is_told() -> None:
    shown = excerpt("\n".join(entries("CONFIG", 200, 3))).splitlines()
    assert shown[:-1] == sorted(shown[:-1])
    assert "200 lines in all" in shown[-1]


def test_free_lines_of_a_person_are_shown_too() -> None:
    assert "my cat is called Ada" in excerpt("\n".join([*entries("CONFIG", 100, 3), "my cat is called Ada"]))


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=5000), st.integers(min_value=100, max_value=3000))
def test_no_memory_makes_an_excerpt_longer_than_its_limit(text: str, limit: int) -> None:
    assert len(excerpt(text, limit)) <= limit
