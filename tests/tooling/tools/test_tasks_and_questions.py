"""The tools manage_tasks and ask_user."""

from pathlib import Path

from tests.tooling.tool_harness import FakeUser, ToolHarness
from tooling.contract.result import TaskItem
from tooling.tools.ask_user import NO_USER
from tooling.tools.manage_tasks import format_tasks


def test_tasks_are_formatted_one_per_line() -> None:
    tasks = (TaskItem(id="1", content="look"), TaskItem(id="b", content="act", status="completed"))
    assert format_tasks(tasks) == "1. look [pending]\nb. act [completed]"
    assert format_tasks(()) == "(no tasks)"


async def test_tasks_are_added_updated_and_cleared(harness: ToolHarness) -> None:
    await harness.call("manage_tasks", action="add", tasks=[{"content": "look"}, {"id": 7, "content": "act"}])
    updated = await harness.call("manage_tasks", action="update", tasks=[{"id": 7, "status": "completed"}])
    assert updated.content == "1. look [pending]\n7. act [completed]"
    assert updated.meta.tasks == (
        TaskItem(id="1", content="look"),
        TaskItem(id="7", content="act", status="completed"),
    )
    assert (await harness.call("manage_tasks", action="clear")).content == "1. look [pending]"
    assert (await harness.call("manage_tasks", action="list")).content == "1. look [pending]"


async def test_each_step_has_its_own_task_list(harness: ToolHarness) -> None:
    await harness.call("manage_tasks", action="add", tasks=[{"content": "mine"}])
    other = await harness.executor.call_tool("manage_tasks", {"action": "list"}, harness.ctx(step_id="step2"))
    assert other.content == "(no tasks)"


async def test_unknown_tasks_and_tasks_without_content_are_errors(harness: ToolHarness) -> None:
    result = await harness.call("manage_tasks", action="update", tasks=[{"id": "9", "status": "completed"}])
    assert (result.exit_code, "unknown: 9" in result.content) == (1, True)
    assert (await harness.call("manage_tasks", action="add", tasks=[{"id": "1"}])).exit_code == 1


async def test_the_users_answer_is_returned_to_the_model(tmp_path: Path) -> None:
    user = FakeUser(answer="blue")
    harness = ToolHarness(tmp_path, asker=user)
    chosen = await harness.call("ask_user", question="Which colour?", options=["red", "blue"])
    free = await harness.call("ask_user", question="Which colour?", options=["red", "green"])
    assert (chosen.content, free.content) == ("User selected: blue", "User answered: blue")
    assert user.asked == ["Which colour?", "Which colour?"]


async def test_without_a_user_no_option_is_chosen(harness: ToolHarness) -> None:
    result = await harness.call("ask_user", question="Which colour?", options=["red", "blue"])
    assert (result.exit_code, result.meta.status, result.content) == (1, "error", NO_USER)
