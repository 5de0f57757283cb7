"""Layout of a plan: columns by dependency, so that steps that can run in parallel share a column."""

from collections.abc import Mapping, Sequence

from agent.sessions.views.run_summary import StepView
from agent.vocabulary.plan import LEAD
from tooling.contract.fast_dataclass import dataclass

NODE_WIDTH, NODE_HEIGHT = 184, 48
_COLUMN_GAP, _ROW_GAP, _MARGIN = 44, 14, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One step with the position of its upper left corner."""

    step: StepView
    x: int
    y: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The line from a step to a dependent one, as an SVG path."""

    path: str
    is_done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGraph:
    """The layout of a plan."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: int
    height: int


def draw_plan(steps: Sequence[StepView]) -> PlanGraph:
    """Place every step to the right of its dependencies, and near them."""
    parents = _parents(steps)
    columns: dict[int, list[StepView]] = {}
    depth: dict[str, int] = {}
    for step in _in_order(steps, parents):
        depth[step.id] = 1 + max((depth[name] for name in parents[step.id]), default=-1)
        columns.setdefault(depth[step.id], []).append(step)
    row: dict[str, float] = {}
    for column in sorted(columns):
        columns[column].sort(key=lambda step: _mean([row[name] for name in parents[step.id]]))
        row |= {step.id: float(number) for number, step in enumerate(columns[column])}
    nodes = tuple(
        Node(
            step=step,
            x=_MARGIN + column * (NODE_WIDTH + _COLUMN_GAP),
            y=_MARGIN + number * (NODE_HEIGHT + _ROW_GAP),
        )
        for column in sorted(columns)
        for number, step in enumerate(columns[column])
    )
    rows = max(map(len, columns.values()), default=0)
    return PlanGraph(
        nodes=nodes,
        edges=tuple(_edges(nodes, parents)),
        width=2 * _MARGIN + max(0, len(columns) * (NODE_WIDTH + _COLUMN_GAP) - _COLUMN_GAP),
        height=2 * _MARGIN + max(0, rows * (NODE_HEIGHT + _ROW_GAP) - _ROW_GAP),
    )


def _parents(steps: Sequence[StepView]) -> Mapping[str, tuple[str, ...]]:
    """Return the dependencies of each step; steps without any depend on the lead, which delegated them."""
    known = {step.id for step in steps}
    return {
        step.id: tuple(name for name in step.depends_on if name in known and name != step.id)
        or ((LEAD,) if LEAD in known and step.id != LEAD else ())
        for step in steps
    }


def _in_order(steps: Sequence[StepView], parents: Mapping[str, tuple[str, ...]]) -> list[StepView]:
    """Return the steps in topological order; a cycle, which no valid plan has, is cut."""
    waiting, placed, order = list(steps), set[str](), list[StepView]()
    while waiting:
        ready = [step for step in waiting if placed.issuperset(parents[step.id])]
        if not ready:
            return order
        order += ready
        placed |= {step.id for step in ready}
        waiting = [step for step in waiting if step.id not in placed]
    return order


def _edges(nodes: Sequence[Node], parents: Mapping[str, tuple[str, ...]]) -> list[Edge]:
    place = {node.step.id: node for node in nodes}
    edges = []
    for node in nodes:
        for name in parents[node.step.id]:
            start = place[name]
            x1, y1 = start.x + NODE_WIDTH, start.y + NODE_HEIGHT // 2
            x2, y2 = node.x, node.y + NODE_HEIGHT // 2
            middle = (x1 + x2) // 2
            path = f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}"
            edges.append(Edge(path=path, is_done=start.step.status in ("ok", "partial") or name == LEAD))
    return edges


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
