"""The jobs of a trace of the line protocol: each request as the handler of the model that is about it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from fencepost.model.frozen import evolve, fast_frozen
from fencepost.model.region import operator as handlers
from fencepost.model.region.controller import (
    GroupBean,
    Offsets,
    OperatorCheckpoint,
    contribute,
    known_offsets,
    lay_over,
    no_offsets,
    put_offset,
    register,
    retire,
)
from fencepost.model.region.operator import (
    ClientState,
    DrainTimes,
    Operator,
    OperatorStep,
    assignment_metrics,
    count_drain,
)
from fencepost.model.region.settings import (
    REPAIRED,
    accepts_control_port,
    accepts_start_position,
    must_pause,
    reset_succeeds,
)
from fencepost.model.region.specification import REGION
from fencepost.traces.events import Body, Operation
from fencepost.traces.judge.groups.judged_protocol import JudgedProtocol
from fencepost.traces.judge.search.configuration import GroupOperation, Instant, Path
from fencepost.traces.judge.search.stepper import HandlerStepper
from fencepost.traces.verdict import TransitionFields

# A job as the judge follows it: the model's operators, bean and control variables, and what each operator wrote.


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


def put_operator(state: JobState, name: str, operator: Operator | None) -> JobState:
    """The job with an operator in another state, or down, and then its contribution is forgotten."""
    others = dict(state.operators)
    others.pop(name, None)
    if operator is None:
        kept = tuple(one for one in state.contributions if one[0] != name)
        drains = tuple(one for one in state.drains if one[0] != name)
        return evolve(state, operators=tuple(sorted(others.items())), contributions=kept, drains=drains)
    return evolve(state, operators=tuple(sorted({**others, name: operator}.items())))


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


# The steps of a job: each request of the line protocol as the handler of the model that is about it.


JobStep: TypeAlias = tuple[JobState, str, Body]
"""The job after a request, the rule, and what the response must show."""
TOPIC = "t"
"""The line protocol names partitions by numbers alone."""
SOUGHT = frozenset({"assign.sought", "reset.initial", "reset.merged"})
"""Rules by which the client is made to seek."""


class UnfitRequest(Exception):
    """The operator is down, or has nothing of what the request is about: the model has no step for it."""


def open_job(state: JobState, request: Body) -> JobStep:
    """A new job."""
    return JobState(tuple(sorted(request["operators"])), request["max_poll_records"]), "job.opened", {}


def launch(state: JobState, request: Body) -> JobStep:
    """An operator registers and subscribes (I1 to I4)."""
    name, index = request["operator"], request["region"]
    if state.region not in (None, index):
        return state, "bean.refused", {"refused": True}
    if not accepts_control_port(bool(request.get("control_port"))):
        return state, "operator.control-port", {"refused": True}
    if not accepts_start_position(request.get("start_position", "Beginning")):
        return state, "operator.start-position", {"refused": True}
    operator = handlers.new_operator(WIDTH)
    if request.get("again"):
        operator = handlers.relaunch(operator)
    bean, _ = register(state.bean, name)
    after = put_operator(evolve(state, region=index, bean=bean), name, operator)
    return after, "bean.registered", {**view_of(operator), "refused": False}


def crash(state: JobState, request: Body) -> JobStep:
    """The PE dies."""
    return put_operator(state, request["operator"], None), "operator.missed", {}


def restart(state: JobState, request: Body) -> JobStep:
    """The job control plane restarts: operators connect again, and repeat what they contributed (H11)."""
    bean = GroupBean()
    for name, _ in state.operators:
        bean, _ = register(bean, name)
    for _, (number, part) in sorted(state.contributions, key=lambda one: one[1][0]):
        bean, _ = contribute(bean, number, part, state.job, REPAIRED)
    return evolve(state, bean=bean), "bean.created", {}


def retire_checkpoint(state: JobState, request: Body) -> JobStep:
    """Merges up to a number are forgotten (M3)."""
    number = request["number"]
    kept = tuple(one for one in state.parts if one[0] > number)
    return evolve(state, bean=retire(state.bean, number), parts=kept), "bean.retired", {}


def take_operator_step(state: JobState, request: Body, step: OperatorStep, **more: object) -> JobStep:
    """The job after a step of an operator, with what the response shows of it."""
    after = put_operator(state, request["operator"], step.operator)
    if step.variables is not None:
        after = evolve(after, variables=step.variables)
    seeks = step.operator.positions if step.rule in SOUGHT else None
    return after, step.rule, {**view_of(step.operator, seeks, step.requests_reset), **more}


def operator_of(state: JobState, request: Body) -> Operator:
    """The operator of a request. Raises `UnfitRequest` if it is down."""
    found = state.operator(request["operator"])
    if found is None:
        raise UnfitRequest(f"operator {request['operator']} is down")
    return found


def revoke(state: JobState, request: Body) -> JobStep:
    """onPartitionsRevoked."""
    return take_operator_step(state, request, handlers.on_revoked(operator_of(state, request)))


def assign(state: JobState, request: Body) -> JobStep:
    """onPartitionsAssigned."""
    told: Offsets = tuple(request["starts"].get(str(partition)) for partition in range(WIDTH))
    starts = lay_over(state.starts, told)
    partitions = tuple(sorted(request["partitions"]))
    operator = operator_of(state, request)
    step = handlers.on_assigned(operator, partitions, state.variables, REPAIRED, starts)
    count, topics = assignment_metrics((TOPIC, one) for one in partitions)
    return take_operator_step(evolve(state, starts=starts), request, step, partitions=count, topics=topics)


def poll(state: JobState, request: Body) -> JobStep:
    """A poll returns records, as many as there is room for (P1 to P4)."""
    operator = operator_of(state, request)
    pauses = must_pause(len(operator.queue), state.max_poll_records)
    if pauses:
        return take_operator_step(state, request, OperatorStep(operator, "poll.paused"), pauses=True)
    step = OperatorStep(operator, "poll.empty")
    if operator.state is not ClientState.RESET_PENDING and not all(has_position(operator, *request["records"])):
        return put_operator(state, request["operator"], None), "poll.position-lost", {"fails": True}
    for partition, offset in request["records"]:
        placed = evolve(step.operator, positions=put_offset(step.operator.positions, partition, offset))
        step = handlers.fetch(placed, partition)
    return take_operator_step(state, request, step, pauses=False)


def has_position(operator: Operator, *records: Sequence[int]) -> Iterator[bool]:
    """For the first record of each partition, whether it is the one that the operator has sought or reads next."""
    first: dict[int, int] = dict(reversed(records))  # type: ignore[arg-type]
    for partition, offset in first.items():
        position = known_offsets(operator.positions)[partition]
        yield position is None or reset_succeeds(position, offset, REPAIRED)


def take(state: JobState, request: Body) -> JobStep:
    """The process thread takes a message (P6)."""
    operator = operator_of(state, request)
    step = handlers.take_message(operator, bool(request["permit"]), REPAIRED)
    if step is None:
        return take_operator_step(state, request, OperatorStep(operator, "process.waits"), taken=False)
    return take_operator_step(state, request, step, taken=True)


def submit(state: JobState, request: Body) -> JobStep:
    """The process thread submits or drops the message (P7)."""
    operator = operator_of(state, request)
    step = handlers.submit_message(operator, bool(request["permit"]), REPAIRED)
    if step is None:
        return take_operator_step(state, request, OperatorStep(operator, "process.waits"), tuple=None)
    told = None if step.submitted is None else list(step.submitted)
    return take_operator_step(state, request, step, tuple=told)


def drain(state: JobState, request: Body) -> JobStep:
    """Drain and commit (D1 to D4); a commit that fails restarts the PE."""
    operator = operator_of(state, request)
    name, commit = request["operator"], body_of(handlers.offsets_to_commit(operator))
    if request["error"] and commit:
        return put_operator(state, name, None), "drain.commit-failed", {"commit": commit, "fails": True}
    times = count_drain(dict(state.drains).get(name, DrainTimes()), request.get("takes", 0))
    drains = tuple(sorted({**dict(state.drains), name: times}.items()))
    told = {"drains": {"last": times.last_ms, "longest": times.longest_ms}} if "takes" in request else {}
    step = handlers.drain(operator)
    return take_operator_step(evolve(state, drains=drains), request, step, commit=commit, fails=False, **told)


def checkpoint(state: JobState, request: Body) -> JobStep:
    """Write a checkpoint, or refuse (K1)."""
    name, number, operator = request["operator"], request["number"], operator_of(state, request)
    if not handlers.is_fit_for_checkpoint(operator, bool(request["member"]), REPAIRED):
        refused = OperatorStep(operator, "checkpoint.refused")
        return take_operator_step(state, request, refused, written=None, names=None)
    part = handlers.write_checkpoint(operator, name, state.job, REPAIRED)
    kept = tuple(one for one in state.parts if one[0] != number or one[1].name != name)
    after = evolve(state, parts=(*kept, (number, part)))
    step = OperatorStep(operator, "checkpoint.written")
    return take_operator_step(after, request, step, written=body_of(part.offsets), names=list(state.names))


def resume(state: JobState, request: Body) -> JobStep:
    """The checkpoint is complete (K2)."""
    return take_operator_step(state, request, handlers.resume(operator_of(state, request)))


def reset(state: JobState, request: Body) -> JobStep:
    """Be reset to the initial state (X1), or contribute to the merge of a checkpoint (X2)."""
    name, number, operator = request["operator"], request["number"], operator_of(state, request)
    if number == 0:
        step = handlers.reset_to_initial(operator, state.variables, REPAIRED, state.starts)
        return take_operator_step(state, request, step, done=True)
    part = next((part for one, part in state.parts if one == number and part.name == name), None)
    if part is None:
        raise UnfitRequest(f"operator {name} wrote no checkpoint {number}")
    bean, rule = contribute(state.bean, number, part, state.job, REPAIRED)
    others = tuple(one for one in state.contributions if one[0] != name)
    after = evolve(state, bean=bean, contributions=(*others, (name, (number, part))))
    return take_operator_step(after, request, OperatorStep(operator, rule), done=False)


def finish(state: JobState, request: Body) -> JobStep:
    """Hear of the merge, and seek it (X4)."""
    number, operator = request["number"], operator_of(state, request)
    bean = state.bean
    if bean.checkpoint != number or bean.merged is None:
        if request.get("late"):
            return take_operator_step(state, request, OperatorStep(operator, "merge.late"), done=False, fails=True)
        return take_operator_step(state, request, OperatorStep(operator, "merge.waiting"), done=False)
    told = evolve(operator, notice=(number, bean.merged))
    step = handlers.reset_to_merge(told, number, state.variables, REPAIRED, state.starts)
    if step is None:
        raise UnfitRequest(f"there is no merge {number}")
    return take_operator_step(state, request, step, done=True)


STEPS: Mapping[str, Callable[[JobState, Body], JobStep]] = {
    "open": open_job,
    "launch": launch,
    "crash": crash,
    "restart": restart,
    "retire": retire_checkpoint,
    "revoke": revoke,
    "assign": assign,
    "poll": poll,
    "take": take,
    "submit": submit,
    "drain": drain,
    "checkpoint": checkpoint,
    "resume": resume,
    "reset": reset,
    "finish": finish,
}
"""The step of each request."""


@dataclass(slots=True)
class RegionStepper(HandlerStepper):
    """Takes single steps of one job, which has no timers."""

    def initial_state(self) -> JobState:
        """A job that is not open."""
        return JobState()

    def armed_timers(self, state: JobState) -> Sequence[Any]:
        """None."""
        return ()

    def take_step(self, state: JobState, part: GroupOperation | None, now: Instant) -> JobStep:
        """The step of a request."""
        assert part is not None
        try:
            return STEPS[part.operation.api](state, part.operation.body)
        except UnfitRequest:
            return state, "request.unfit", {}


# A trace of the line protocol as its judge sees it: one job.


JOB = "job"
"""The name of the only job."""
FIELDS: Mapping[str, tuple[str, ...]] = {
    "open": ("operators", "max_poll_records"),
    "launch": ("operator", "region"),
    "crash": ("operator",),
    "restart": (),
    "retire": ("number",),
    "revoke": ("operator",),
    "assign": ("operator", "partitions", "starts"),
    "poll": ("operator", "records"),
    "take": ("operator", "permit"),
    "submit": ("operator", "permit"),
    "drain": ("operator", "error"),
    "checkpoint": ("operator", "number", "member"),
    "resume": ("operator",),
    "reset": ("operator", "number"),
    "finish": ("operator", "number"),
}
"""The fields that a request must have."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request as its group sees it; what it asks for is in its body."""

    group: str
    api: str
    operator: str


class RegionProtocol(JudgedProtocol):
    """Reads a trace of one job."""

    specification = REGION
    stepper = RegionStepper

    def requests_in(self, operation: Operation, groups: Iterable[str]) -> Iterator[JobRequest]:
        """The request; KeyError if it lacks a field."""
        body = operation.body
        for name in FIELDS[operation.api]:
            body[name]
        yield JobRequest(JOB, operation.api, body.get("operator", ""))

    def transition_of(self, step: Path) -> TransitionFields | None:
        """The transition of the operator that the request is about."""
        request = step.request
        if step.start is None or step.outcome is None or not isinstance(request, JobRequest):
            return None
        before, after = (operator_label(state, request.operator) for state in (step.start, step.outcome.state))
        return before, request.api, step.rule, after

    def state_label(self, state: JobState) -> str:
        """How many operators are up, as text."""
        return f"{len(state.operators)} operators up"


def operator_label(state: JobState, name: str) -> str:
    """The state of an operator, as text; "job" where a request is about none."""
    if not name:
        return JOB
    operator = state.operator(name)
    return "down" if operator is None else STATES[operator.state].lower().replace("_", " ")
