"""Whether a group can always settle: from every state that is reached, some run leads to a settled one."""

from collections import defaultdict, deque
from dataclasses import dataclass
from time import perf_counter

from fencepost.model.explore.engine import explore_system
from fencepost.model.explore.graph_export import edges_from
from fencepost.model.explore.push.properties import is_settled
from fencepost.model.explore.push.row import PushBounds
from fencepost.model.explore.push.system import push_system
from fencepost.model.explore.search import NO_LIMIT


@dataclass(frozen=True, slots=True)
class SettlingResult:
    """How many states there are, how many are settled, and from how many no run leads to one of those."""

    states: int
    settled: int
    stranded: int
    is_complete: bool
    seconds: float


def check_settling(bounds: PushBounds, limit: int = NO_LIMIT) -> SettlingResult:
    """Search everything, and then go backwards from the settled states."""
    began = perf_counter()
    exploration, _ = explore_system(push_system(bounds), limit=limit)
    tables = exploration.tables
    states = list(exploration.reached_states())
    before: defaultdict[int, list[int]] = defaultdict(list)
    for state in states:
        for edge in edges_from(exploration, state):
            before[edge.after].append(state)
    settled = [state for state in states if is_settled(bounds, tables.values(state))]
    able, waiting = set(settled), deque(settled)
    while waiting:
        for state in before[waiting.popleft()]:
            if state not in able:
                able.add(state)
                waiting.append(state)
    stranded = len(states) - len(able)
    return SettlingResult(len(states), len(settled), stranded, exploration.finished, perf_counter() - began)
