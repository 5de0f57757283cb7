"""Run, edit or cancel a plan: the graph of `/plan`, and the proposal of a turn in plan mode."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from agent.planning.graph import topological_order
from agent.vocabulary.errors import AgentError
from agent.vocabulary.plan import Plan, PlanStep
from cli.external_programs import RunExternal
from cli.repl.state import ReplState
from cli.screen.format import PLAN_CANCELLED
from cli.screen.sanitize import sanitize

if TYPE_CHECKING:
    from cli.repl.repl import Repl

# The last option of a question of the REPL does nothing; Esc and Ctrl-C choose it.
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
        plan_again: Callable[[str], None],
    ) -> None:
        self._plan_again = plan_again
        self._state = state
        self._request = request
        self._ask = ask
        self._show = show
        self._run_external = run_external

    async def __call__(self, plan: Plan) -> Plan:
        """Return the plan chosen by the user; raise if it is not to be run, which ends the run but not the REPL."""
        from cli.run.plan_editor import EditCancelled

        while plan.answer is None:
            self._show(plan.steps)
            choice = await self._ask(PLAN_QUESTION, CHOICES)
            match choice.casefold():
                case "run":
                    break
                case "edit":
                    plan = await self._edit(plan)
                case "cancel" | "":
                    raise EditCancelled(PLAN_CANCELLED)
                case _:
                    self._plan_again(choice)
                    raise EditCancelled(PLAN_CANCELLED)
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


def plan_again(repl: "Repl", request: str, remark: str) -> None:
    """Make a new plan for a request, with the user's remark about the last one."""
    # A request sent while a run is being stopped is the next one.
    repl.queue.interrupt()
    repl.submit(f"{request}\n\n{remark}", is_reviewed=True, title=f"/plan {remark}")


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
