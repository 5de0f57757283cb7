"""Plans as TOML and JSON text."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.planning.capabilities import Capabilities
from agent.planning.plan_file import parse_plan
from agent.planning.plan_text import json_text, toml_text
from agent.vocabulary.plan import PlanStep
from tooling.tool_catalog import load_catalog

CAPABILITIES = Capabilities(tools={spec.name: spec for spec in load_catalog().specs}, profiles=("default", "reviewer"))
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip)
LISTS = st.lists(TEXTS, max_size=3).map(tuple)


@st.composite
def plans(draw: st.DrawFn) -> list[PlanStep]:
    steps: list[PlanStep] = []
    for number in range(draw(st.integers(1, 4))):
        common = {
            "id": f"s{number}",
            "title": " ".join(draw(TEXTS).split()) or "t",
            "depends_on": tuple(draw(st.sets(st.sampled_from([one.id for one in steps])))) if steps else (),
        }
        kind = draw(st.sampled_from(["task", "tool", "ask_user"]))
        if kind == "task":
            fields = {name: draw(TEXTS) for name in draw(st.sets(st.sampled_from(["expect", "verify", "model"])))}
            steps.append(PlanStep(**common, instruction=draw(TEXTS).strip(), reads=draw(LISTS), **fields))  # type: ignore[arg-type]
        elif kind == "tool":
            args = {"path": draw(TEXTS), "content": draw(TEXTS)}
            title = f"write_file {args['path']}".strip()
            call = PlanStep(
                **common, type="tool", instruction=title, tool="write_file", args=args, writes=(args["path"],)
            )  # type: ignore[arg-type]
            steps.append(call)
        else:
            question = draw(TEXTS)
            steps.append(PlanStep(**common, type="ask_user", instruction=question.strip(), ask_question=question))  # type: ignore[arg-type]
    return steps


@given(plans(), TEXTS)
def test_a_plan_survives_a_round_trip_through_toml_and_json(steps: list[PlanStep], request: str) -> None:
    for text, name in ((toml_text(request, steps), "p.toml"), (json_text(request, steps), "p.json")):
        found = parse_plan(text, name=name, default_request="", capabilities=CAPABILITIES)
        assert (found.request, list(found.steps)) == (request.strip(), steps)


def test_toml_is_formatted_for_editing() -> None:
    steps = [
        PlanStep(
            id="lint", title="Lint", instruction="ruff check", type="tool", tool="run_command",
            args={"command": "ruff check .", "timeout_s": None},
        ),
        PlanStep(id="fix", title="Fix", instruction="Fix it.\nAll of it.", depends_on=("lint", "gone"), est_usd=0.5),
        PlanStep(
            id="note", title="Note", instruction="n", type="tool", tool="write_file",
            args={"path": "a", "content": "one\n" + "x" * 80},
        ),
    ]  # fmt: skip
    assert toml_text("All in order?", steps, head=["A comment.", ""]) == (
        '# A comment.\n#\nrequest = "All in order?"\n\n'
        '[[steps]]\nid = "lint"\ntitle = "Lint"\ntool = "run_command"\nargs = { command = "ruff check ." }\n\n'
        '[[steps]]\nid = "fix"\ntitle = "Fix"\ndepends_on = ["lint"]\ninstruction = """\nFix it.\nAll of it."""\n\n'
        '[[steps]]\nid = "note"\ntitle = "Note"\ntool = "write_file"\n[steps.args]\npath = "a"\ncontent = """\none\n'
        + "x" * 80
        + '"""\n'
    )


@pytest.mark.parametrize("text", ['a"""b\n', "\\n\n", "\r\n", "\x7f\n\x01", "tab\t\n", "'''\n\\", "\n"])
def test_no_text_escapes_its_quotes(text: str) -> None:
    assert tomllib.loads(toml_text(text, []))["request"] == text
