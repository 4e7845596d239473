"""The transition system of the push coordinator within its bounds, and whether a group in it can always settle."""

from collections import defaultdict, deque
from dataclasses import dataclass
from time import perf_counter

from fencepost.model.explore.engine import explore_system
from fencepost.model.explore.rendering import edges_from
from fencepost.model.explore.search import NO_LIMIT
from fencepost.model.explore.transition_system import Action, Column, TransitionSystem
from fencepost.model.push.explore.broker_actions import broker_actions
from fencepost.model.push.explore.consumer_actions import consumer_actions
from fencepost.model.push.explore.fault_actions import fault_actions, waiting_actions
from fencepost.model.push.explore.properties import is_settled, push_checks
from fencepost.model.push.explore.row import PushBounds

# The transition system of the push coordinator within its bounds.


def push_system(bounds: PushBounds) -> TransitionSystem:
    """The system: brokers and consumers with channels of limited length, and faults within their bounds."""
    due: list[Action] = []
    for broker in range(bounds.brokers):
        due += broker_actions(bounds, broker)
    for consumer in range(bounds.consumers):
        due += consumer_actions(bounds, consumer)
    due += waiting_actions(bounds)
    columns = (
        Column("faults left", "faults"),
        Column("ZooKeeper", "zookeeper"),
        *(Column(f"K{broker}", "broker") for broker in range(bounds.brokers)),
        *(Column(name, "link") for name in bounds.names),
    )
    checks = push_checks(bounds, tuple(due))
    return TransitionSystem(columns, bounds.initial(), (*due, *fault_actions(bounds)), checks=checks)


# Whether a group can always settle: from every state that is reached, some run leads to a settled one.


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
