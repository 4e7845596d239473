"""Operations of a group that get no response, and the signs of life that make their silence a violation."""

from collections.abc import Iterator
from dataclasses import dataclass

from fencepost.traces.judge.groups.protocol import GroupProtocol
from fencepost.traces.judge.search.configuration import GroupOperation, Mismatch, Path, State
from fencepost.traces.judge.search.search import Search
from fencepost.traces.judge.search.silence import GivenResponse, Overdue, SilenceSearch

SILENCE_GRACE_MS = 5_000
"""How much longer than the grace of a trace a response may be out where time is not virtual."""
MISSING = "missing"
"""The field of a mismatch that is a response which was never seen."""
MAX_UNANSWERED = 64
"""How many operations without a response are watched in a group."""


@dataclass(slots=True)
class Unanswered:
    """An operation without a response, as far as the trace is known ahead."""

    part: GroupOperation
    sent_in: State
    """The state in which it was sent, in one of the configurations."""
    settled: GivenResponse | None = None
    """The response that the model gave it, by a step that is settled."""
    given_by: int | None = None
    """The time, in milliseconds, by which the model had given it a response in some configuration."""


class SilenceWatch:
    """Watches the operations of one group that get no response."""

    def __init__(self, protocol: GroupProtocol, search: Search) -> None:
        self.protocol = protocol
        self.search = search
        self.grace = protocol.silence_grace()
        self.unanswered: dict[int, Unanswered] = {}
        """By handle, in the order sent."""

    def watch(self, part: GroupOperation) -> None:
        """Watch an operation whose response is not known ahead."""
        is_judged = self.grace is not None and self.protocol.is_handled_by_coordinator(part)
        if is_judged and len(self.unanswered) < MAX_UNANSWERED:
            self.unanswered[part.operation.handle] = Unanswered(part, self.search.configurations[0].world)

    def on_step(self, step: Path) -> None:
        """Note which of the operations a settled step responds to."""
        for reply in step.outcome.replies if step.outcome is not None else ():
            if reply.handle in self.unanswered:
                self.unanswered[reply.handle].settled = GivenResponse(step.rule, reply.response)

    def overdue_operations(self, alive: GroupOperation, last_time: int) -> Iterator[tuple[Unanswered, Overdue]]:
        """The operations whose response was overdue, by the grace, when the coordinator got a request that it responds
        to. What was seen of the group before ends at `last_time`, in milliseconds."""
        if self.grace is None or not self.protocol.is_sign_of_life(alive):
            return
        for handle, one in list(self.unanswered.items()):
            operation = one.part.operation
            # What a lost request would have got is no part of a configuration: equal ones are merged.
            if operation.response is not None or operation.lost:
                del self.unanswered[handle]
                continue
            if self.is_behind_another(one):
                continue
            overdue = self.find_overdue(one, alive.operation.sent_at - self.grace, last_time)
            if overdue is not None:
                yield one, overdue

    def is_behind_another(self, one: Unanswered) -> bool:
        """Whether an older request on the same connection has no response: a broker reads them one by one."""
        operation = one.part.operation
        older = (each.operation for handle, each in self.search.open_operations.items() if handle < operation.handle)
        return any(each.connection == operation.connection for each in older)

    def find_overdue(self, one: Unanswered, moment: int, last_time: int) -> Overdue | None:
        """The operation, if its response had to be out before `moment`, in milliseconds, in every configuration."""
        search = SilenceSearch(self.search, one.part, moment, one.settled)
        overdue = search.find_overdue()
        if search.is_futile:
            del self.unanswered[one.part.operation.handle]
        if overdue is None or not search.was_given:
            return overdue
        # When exactly the model gave it is not known any more, but it was no later than what was seen then.
        one.given_by = last_time if one.given_by is None else one.given_by
        return overdue if one.given_by < moment else None


def missing_response(one: Unanswered, overdue: Overdue) -> Mismatch:
    """The mismatch of an overdue operation."""
    given, state = overdue.given, overdue.configuration.world
    handle = one.part.operation.handle
    return Mismatch(handle, frozenset({MISSING}), given.response, given.rule, state, sent_in=one.sent_in)
