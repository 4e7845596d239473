"""A job as the judge follows it: the model's operators, bean and control variables, and what each operator wrote."""

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region.bean import GroupBean, OperatorCheckpoint
from fencepost.model.region.metrics import DrainTimes
from fencepost.model.region.offsets import Offsets, known_offsets, no_offsets
from fencepost.model.region.operator import ClientState, Operator
from fencepost.traces.events import Body

WIDTH = 16
"""Partitions that a job can have in a trace: 0 to 15."""
EMPTY_BEAN, NO_OFFSETS = GroupBean(), no_offsets(WIDTH)
Part = tuple[int, OperatorCheckpoint]
"""The number of a checkpoint, and what one operator wrote into it."""
STATES: Mapping[ClientState, str] = {
    ClientState.SUBSCRIBED: "SUBSCRIBED",
    ClientState.RECORDS_FETCHED: "RECORDS_FETCHED",
    ClientState.RESET_PENDING: "CR_RESET_PENDING",
    ClientState.RESET_COMPLETE: "RESET_COMPLETE",
}
"""The states as the line protocol names them."""


@fast_frozen
@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job. `operators` are those that are up, `contributions` what each of them sent to the bean last,
    `parts` what was written into checkpoints that are not retired."""

    names: tuple[str, ...] = ()
    max_poll_records: int = 0
    region: int | None = None
    """The index of the group's region, once an operator was launched."""
    operators: tuple[tuple[str, Operator], ...] = ()
    bean: GroupBean = EMPTY_BEAN
    variables: Offsets = NO_OFFSETS
    starts: Offsets = (0,) * WIDTH
    """The start position of each partition, as the last assignment told."""
    contributions: tuple[tuple[str, Part], ...] = ()
    parts: tuple[Part, ...] = ()
    drains: tuple[tuple[str, DrainTimes], ...] = ()
    """The times of the drains of operators, each since its launch."""

    @property
    def job(self) -> frozenset[str]:
        """The names of the job's operators."""
        return frozenset(self.names)

    def operator(self, name: str) -> Operator | None:
        """An operator, None if it is down."""
        return dict(self.operators).get(name)

    def part_of(self, name: str, number: int) -> OperatorCheckpoint | None:
        """What an operator wrote into a checkpoint."""
        return next((part for one, part in self.parts if one == number and part.name == name), None)


def put_operator(state: JobState, name: str, operator: Operator | None) -> JobState:
    """The job with an operator in another state, or down, and then its contribution is forgotten."""
    others = dict(state.operators)
    others.pop(name, None)
    if operator is None:
        kept = tuple(one for one in state.contributions if one[0] != name)
        drains = tuple(one for one in state.drains if one[0] != name)
        return evolve(state, operators=tuple(sorted(others.items())), contributions=kept, drains=drains)
    return evolve(state, operators=tuple(sorted({**others, name: operator}.items())))


def offsets_of(body: Mapping[str, int]) -> Offsets:
    """A map of the line protocol as the model has it."""
    return tuple(body.get(str(partition)) for partition in range(WIDTH))


def body_of(offsets: Offsets) -> dict[str, int]:
    """A map of the model as the line protocol has it."""
    known = known_offsets(offsets)
    return {str(partition): offset for partition, offset in enumerate(known) if offset is not None}


def view_of(operator: Operator, seeks: Offsets | None = None, asks: bool = False) -> Body:
    """What a response shows of an operator."""
    return {
        "state": STATES[operator.state],
        "polling": operator.polling.value,
        "offsets": body_of(operator.offsets),
        "queue": len(operator.queue),
        "buffer": len(operator.drained),
        "hand": None if operator.hand is None else list(operator.hand),
        "seeks": None if seeks is None else body_of(seeks),
        "asks": asks,
    }
