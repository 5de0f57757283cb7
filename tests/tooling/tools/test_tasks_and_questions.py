"""The agent's own list, and its questions to the person."""

from pathlib import Path

from tests.tooling.tool_harness import FakeUser, ToolHarness
from tooling.contract.result import TaskItem
from tooling.tools.manage_tasks import format_tasks


def test_tasks_read_as_a_list() -> None:
    tasks = (TaskItem(id="1", content="look"), TaskItem(id="b", content="act", status="completed"))
    assert format_tasks(tasks) == "1. look [pending]\nb. act [completed]"
    assert format_tasks(()) == "(no tasks)"


async def test_tasks_are_added_updated_and_cleared(place: ToolHarness) -> None:
    await place.call("manage_tasks", action="add", tasks=[{"content": "look"}, {"id": 7, "content": "act"}])
    updated = await place.call("manage_tasks", action="update", tasks=[{"id": 7, "status": "completed"}])
    assert updated.content == "1. look [pending]\n7. act [completed]"
    assert updated.meta.tasks == (
        TaskItem(id="1", content="look"),
        TaskItem(id="7", content="act", status="completed"),
    )
    assert (await place.call("manage_tasks", action="clear")).content == "1. look [pending]"
    assert (await place.call("manage_tasks", action="list")).content == "1. look [pending]"


async def test_every_step_has_its_own_list(place: ToolHarness) -> None:
    await place.call("manage_tasks", action="add", tasks=[{"content": "mine"}])
    other = await place.executor.call_tool("manage_tasks", {"action": "list"}, place.ctx(step_id="step2"))
    assert other.content == "(no tasks)"


async def test_tasks_that_do_not_exist_cannot_be_updated(place: ToolHarness) -> None:
    result = await place.call("manage_tasks", action="update", tasks=[{"id": "9", "status": "completed"}])
    assert (result.exit_code, "unknown: 9" in result.content) == (1, True)
    assert (await place.call("manage_tasks", action="add", tasks=[{"id": "1"}])).exit_code == 1


async def test_an_answer_comes_back_to_the_model(tmp_path: Path) -> None:
    person = FakeUser(answer="blue")
    place = ToolHarness(tmp_path, asker=person)
    chosen = await place.call("ask_user", question="Which colour?", options=["red", "blue"])
    free = await place.call("ask_user", question="Which colour?", options=["red", "green"])
    assert (chosen.content, free.content) == ("User selected: blue", "User answered: blue")
    assert person.asked == ["Which colour?", "Which colour?"]


async def test_with_nobody_there_no_option_is_taken_silently(place: ToolHarness) -> None:
    result = await place.call("ask_user", question="Which colour?", options=["red", "blue"])
    assert (result.exit_code, result.meta.status) == (1, "error")
    assert "Nobody can answer" in result.content
