"""The list to choose from: arrow keys, fuzzy filter, and the draft that comes back."""

from prompt_toolkit.buffer import Buffer

from cli.repl.fuzzy import filter_candidates
from cli.repl.ui.picker import NO_MATCH, Picker
from cli.screen.colors import Paint

MODELS = [("openai/gpt-5-mini", "400k"), ("openai/gpt-5", ""), ("anthropic/claude-sonnet", ""), ("ollama/qwen3", "")]


class PickerHarness:
    """An open list over a prompt."""

    def __init__(self, candidates: list[tuple[str, str]] = MODELS, draft: str = "") -> None:
        self.chosen: list[str | None] = []
        self.time = 0.0
        self.buffer = Buffer(multiline=True)
        self.buffer.insert_text(draft)
        self.picker = Picker(
            buffer=self.buffer, paint=Paint(has_color=False), refresh=lambda: None, now=lambda: self.time
        )
        self.picker.open("choose", candidates, self.chosen.append, min_seen_s=0.4)

    def shown(self, width: int = 40, height: int = 20) -> list[str]:
        return self.picker.lines(width, height)[1:]


def test_all_words_must_match_and_complete_words_come_first() -> None:
    assert [name for name, _ in filter_candidates(MODELS, "gpt5")] == ["openai/gpt-5-mini", "openai/gpt-5"]
    assert [name for name, _ in filter_candidates(MODELS, "mini OPEN")] == ["openai/gpt-5-mini"]
    assert [name for name, _ in filter_candidates([("axbxc", ""), ("abc", "")], "abc")] == ["abc", "axbxc"]
    assert filter_candidates(MODELS, "") == MODELS


def test_the_closest_fuzzy_match_comes_first() -> None:
    models = [("openai/gpt-5.1-codex-mini", ""), ("openai/gpt-5-mini", "")]
    assert [name for name, _ in filter_candidates(models, "g5m")] == ["openai/gpt-5-mini", "openai/gpt-5.1-codex-mini"]


def test_typing_filters_and_enter_chooses() -> None:
    harness = PickerHarness(draft="half a thou")
    assert harness.buffer.text == ""
    harness.buffer.insert_text("snnt")
    assert harness.shown() == ["→ anthropic/claude-sonnet"]
    harness.time = 1
    harness.picker.choose()
    assert (harness.chosen, harness.buffer.text) == (["anthropic/claude-sonnet"], "half a thou")
    assert not harness.picker.is_open and harness.shown() == []


def test_arrows_move_from_the_last_to_the_first() -> None:
    harness = PickerHarness()
    harness.picker.move(-1)
    assert [line for line in harness.shown() if line.startswith("→")] == ["→ ollama/qwen3"]
    harness.picker.move(1)
    assert harness.shown()[0] == "→ openai/gpt-5-mini  400k"


def test_leaving_chooses_nothing() -> None:
    harness = PickerHarness(draft="draft")
    harness.buffer.insert_text("gpt")
    assert harness.picker.cancel() and not harness.picker.cancel()
    assert (harness.chosen, harness.buffer.text) == ([None], "draft")


def test_enter_does_nothing_too_early_and_without_a_match() -> None:
    harness = PickerHarness()
    harness.picker.choose()
    harness.time = 1
    harness.buffer.insert_text("nowhere")
    harness.picker.choose()
    assert harness.chosen == []
    assert harness.shown() == [f"  {NO_MATCH}"]


def test_a_long_list_fits_into_a_small_window_and_keeps_the_mark_visible() -> None:
    harness = PickerHarness([(f"session {number}", "2 days ago, success") for number in range(500)])
    for height in (1, 2, 5, 22):
        harness.picker.move(50)
        lines = harness.picker.lines(30, height)
        assert len(lines) <= min(height, 11) and all(len(line) <= 30 for line in lines)
        assert height == 1 or any(line.startswith("→") for line in lines)
