"""Run, edit or cancel a plan: the graph of `/plan`, and the proposal of a turn in plan mode."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.planning.graph import topological_order
from agent.vocabulary.errors import AgentError
from agent.vocabulary.plan import Plan, PlanStep
from cli.external_programs import RunExternal
from cli.repl.state import ReplState
from cli.screen.sanitize import sanitize

if TYPE_CHECKING:
    from cli.repl.repl import Repl

# The last option of a question of the REPL is the one that does nothing; Esc and Ctrl-C choose it.
CANCEL = "Cancel"
RUN, EDIT = "Run", "Edit"
CHOICES = (RUN, EDIT, CANCEL)
PLAN_QUESTION = "Run this plan?"
CARRY_OUT = "Carry out the plan."
CARRY_OUT_EDITED = "Carry out this plan:"


class PlanReview:
    """Draws the plan of a run and asks what to do with it while the run waits."""

    def __init__(
        self,
        *,
        state: ReplState,
        request: str,
        ask: Callable[[str, tuple[str, ...]], Awaitable[str]],
        show: Callable[[Sequence[PlanStep]], None],
        run_external: RunExternal,
    ) -> None:
        self._state = state
        self._request = request
        self._ask = ask
        self._show = show
        self._run_external = run_external

    async def __call__(self, plan: Plan) -> Plan:
        """Return the plan as the user wants it; raise if it is not to be run. That ends the run, not the REPL."""
        from cli.run.plan_editor import CANCELLED, EditCancelled

        while plan.answer is None:
            self._show(plan.steps)
            choice = await self._ask(PLAN_QUESTION, CHOICES)
            if choice.casefold() == RUN.casefold():
                break
            if choice.casefold() != EDIT.casefold():
                raise EditCancelled(CANCELLED)
            plan = await self._edit(plan)
        return plan

    async def _edit(self, plan: Plan) -> Plan:
        edited: list[tuple[PlanStep, ...] | AgentError] = []
        await self._run_external(lambda: edited.append(self._open_editor(plan)))
        if isinstance(edited[0], AgentError):
            raise edited[0]
        return replace(plan, steps=topological_order(edited[0]))

    def _open_editor(self, plan: Plan) -> tuple[PlanStep, ...] | AgentError:
        from cli.run.plan_editor import PlanEditor, check_step_limit, plan_capabilities

        settings = self._state.read_settings().settings
        editor = PlanEditor(plan_capabilities(settings, self._state.environ), self._state.environ)
        try:
            steps = tuple(editor.edit(plan.steps, self._request))
            check_step_limit(len(steps), settings)
        except AgentError as error:
            return error
        return steps


async def ask_about_proposal(repl: "Repl", proposal: str) -> None:
    """Ask what to do with the answer of a turn in plan mode; any other text is the next line."""
    request = CARRY_OUT
    while True:
        choice = await repl.ui.ask(PLAN_QUESTION, CHOICES)
        match choice.casefold():
            case "run":
                repl.state.leave_plan_mode()
                repl.submit(request)
                return
            case "edit":
                edited = await _edit_text(repl, proposal)
                if edited.strip() and edited != proposal:
                    proposal, request = edited, f"{CARRY_OUT_EDITED}\n\n{edited}"
                    repl.print_line(sanitize(edited))
            case "cancel":
                return
            case _:
                repl.accept(choice)
                return


async def _edit_text(repl: "Repl", text: str) -> str:
    edited: list[str] = []
    await repl.ui.run_external(lambda: edited.append(repl.programs.edit(text)))
    return edited[0] if edited else ""
