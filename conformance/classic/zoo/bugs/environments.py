"""The bundled coordinator that has the bugs: how it crashes, its mutants, and environments in which some bugs show.

In an environment storage is slow or fails, or loading is slow. A coordinator without bugs keeps all requirements in
each of them. Their effects are in named functions, so that a bug can replace them. What a coordinator responds with
that does not read the group is at the end.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from fencepost.adapters import classic
from fencepost.adapters.address import TargetError
from fencepost.adapters.classic import responses
from fencepost.adapters.classic.administration import Loading
from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group, Partition, State
from fencepost.adapters.classic.log import LogWriteError
from fencepost.adapters.classic.membership import Syncing
from fencepost.adapters.classic.offsets import Commit, Commits, Offsets, OffsetStore
from fencepost.adapters.classic.records import GroupRecord, GroupTombstone, OffsetRecord, OffsetTombstone, Record
from fencepost.adapters.in_process import InProcessTarget
from fencepost.adapters.serve.coordination import Request, Response
from fencepost.adapters.target import Description, Target
from fencepost.conformance.zoo.fault import FaultFamily, Patch, Shipped, Side, instead_of
from fencepost.conformance.zoo.mutants import Mutant, apply_mutant, load_changed, package_mutants, source_of
from fencepost.conformance.zoo.operators import GUARD_OPERATORS
from fencepost.model.errors import Error
from fencepost.model.settings import Settings
from fencepost.model.wire.codec import encode_body
from fencepost.traces.events import Kind, Order

# --- The bundled coordinator as in a process of its own, and its mutants.

TIMER_WORDS = ("timer", "arm", "cancel", "touch_session", "deadline", "delay", "schedule")
"""Words by which a statement or a sum is about a timer."""
EXCLUDED_MODULES = frozenset(("client", "coordinator", "coordinator_state", "log", "messages", "records", "responses"))
"""Modules without decisions, such as layouts, files and names, and those that are no part of the coordinator."""
_COORDINATOR = f"{classic.__name__}.coordinator"


class CrashingTarget(InProcessTarget):
    """In process, on virtual time; with order INTERVALS, traces are as clients see them.

    A coordinator that raises an exception is gone: every connection is closed without a response, and requests fail
    until the next restart. A mutant takes the place of `coordinator` while it is active.
    """

    coordinator: type[Coordinator] = Coordinator

    def __init__(self, *given: Any, order: Order = Order.TOTAL, **named: Any) -> None:
        super().__init__(*given, **{"make_coordinator": self.coordinator, **named})
        self._order = order

    async def open(self) -> Description:
        """As `InProcessTarget.open`."""
        return replace(await super().open(), order=self._order)

    async def restart(self, max_group_size: int | None = None) -> None:
        """As `InProcessTarget.restart`. Raises `TargetError` if it does not start."""
        try:
            await super().restart(max_group_size)
        except Exception as error:
            self._crash()
            raise TargetError(f"the coordinator does not start any more: {error!r}") from error

    def submit(self, request: Request, flight: Any) -> None:
        """As `InProcessTarget.submit`."""
        try:
            super().submit(request, flight)
        except TargetError:
            raise
        except Exception:
            self._crash()

    def advance(self) -> None:
        """As `InProcessTarget.advance`."""
        try:
            super().advance()
        except Exception:
            self._crash()

    def _deliver(self, responses: Iterable[Response]) -> None:
        """As `InProcessTarget`, with a crash for a response that cannot be encoded, as where it has to be sent."""
        known = list(responses)
        for response in known:
            flight = self._pending.get(response.handle)
            if flight is not None:
                encode_body(f"{flight.request.api}Response", flight.request.version, response.body)
        super()._deliver(known)

    def _crash(self) -> None:
        self._coordinator = None
        if self._timer is not None:
            self._timer.cancel()
        lost, self._pending = self._pending, {}
        for flight in lost.values():
            request = flight.request
            flight.channel.recorder.record(
                Kind.FAULT, "closed", request.version, {}, connection=request.connection, of=request.sequence
            )
            flight.channel.disconnect(flight)


# -- mutants -------------------------------------------------------------------------------------------------------


def coordinator_mutants() -> Iterator[Mutant]:
    """The mutants of every guard, comparison and timer of the bundled coordinator in the order of the source."""
    mutants = package_mutants(classic, EXCLUDED_MODULES, GUARD_OPERATORS | {"statement", "sum"})
    return filter(is_systematic, mutants)


def is_systematic(mutant: Mutant) -> bool:
    """Whether the mutant changes a guard, a comparison or a timer."""
    if mutant.operator in GUARD_OPERATORS:
        return bool(mutant.function)
    return any(word in mutant.before.lower() for word in TIMER_WORDS)


def put_in_mutant(mutant: Mutant, patch: Patch) -> None:
    """Have crashing targets run the mutant. Raises any exception while it is loaded."""
    patch.replace(CrashingTarget, "coordinator", load_coordinator(mutant))


@lru_cache(maxsize=1)
def load_coordinator(mutant: Mutant) -> type[Coordinator]:
    """The coordinator with the mutant in it."""
    tree = apply_mutant(source_of(mutant.module), mutant)
    loaded: type[Coordinator] = load_changed({mutant.module: tree}, [_COORDINATOR])[_COORDINATOR].Coordinator
    return loaded


STORE_DELAY_MS = 200
"""How long a slow log takes over a record."""
LOADING_DELAY_MS = 400
"""How long loading takes where it takes a while."""
OUTAGE_MS = 5_000
"""How long after a restart the log takes no offsets."""
LOADING, OUTAGE = "loading", "outage"
"""The timers that end slow loading and an outage."""


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment in which a coordinator runs. It delays responses by up to `grace` milliseconds; `order` is that
    of its traces; `settings` are those of its coordinator, None for the usual ones."""

    name: str
    install: Callable[[Patch], None]
    grace: int = 0
    order: Order = Order.TOTAL
    settings: Settings | None = None

    @contextmanager
    def activate(self) -> Iterator[Patch]:
        """Install the environment in this process for the duration of the context."""
        with Patch() as patch:
            self.install(patch)
            yield patch

    def make_target(self, settings: Settings) -> Target:
        """A bundled coordinator, which runs in this environment while that is active."""
        return CrashingTarget(settings, order=self.order)


# --- a log that stores assignments slowly ---------------------------------------------------------------------------


def is_current(group: Group, generation: int) -> bool:
    """Whether the group still waits for the assignment of this generation."""
    return group.state is State.COMPLETING and group.generation == generation


@instead_of(Syncing.accept_assignment)
def store_assignments_slowly(
    shipped: Shipped[None], syncing: Syncing, group: Group, assignments: dict[str, bytes]
) -> None:
    """Store the leader's assignment in the background, as a real broker does."""
    runtime, generation = syncing._runtime, group.generation
    record: GroupRecord = syncing.assigned_record(group, assignments)

    def on_stored() -> None:
        if is_current(group, generation):
            runtime.write(record)
            syncing.distribute_assignments(group, {each: assignments.get(each, b"") for each in group.members})

    runtime.timers.arm(("store", group.group_id, generation), runtime.now + STORE_DELAY_MS, on_stored)


# --- a log that stores offsets slowly -------------------------------------------------------------------------------


@dataclass(slots=True)
class SlowWrite:
    """Offsets that are being written until `due`; one that is deleted meanwhile stays deleted."""

    due: int
    batch: list[OffsetRecord]


def after_a_restart(loading: Loading, under_way: list[SlowWrite]) -> None:
    """Discard writes that were in progress when the coordinator stopped."""
    under_way.clear()


def store_offsets_slowly(patch: Patch) -> None:
    """Check a commit at once; write it and respond a while later."""
    handle, load, delete = Commits.handle, Loading.load, Offsets.delete
    remove_offset, remove_group = OffsetStore.remove_offset, OffsetStore.remove_group

    def under_way(runtime: CoordinatorState) -> list[SlowWrite]:
        found: list[SlowWrite] = vars(runtime.log).setdefault("under_way", [])
        return found

    def handle_slowly(commits: Commits, request: Request) -> None:
        commit, entries = Commit.read(request), commits.partitions(request)
        if not entries or commits.admit(commit) or commit.is_transactional:
            handle(commits, request)
            return
        runtime, results = commits._runtime, commits.refuse_absent(request)
        batch: list[OffsetRecord] = []
        for topic, row in entries:
            too_long = commits.is_metadata_too_long(row)
            results[topic, row["partition_index"]] = Error.OFFSET_METADATA_TOO_LARGE if too_long else Error.NONE
            batch += () if too_long else (commits.record(commit, topic, row),)
        write = SlowWrite(runtime.now + STORE_DELAY_MS, batch)
        under_way(runtime).append(write)

        def on_stored() -> None:
            under_way(runtime).remove(write)
            runtime.write(*write.batch)
            for record in write.batch:
                commits._ledger.add_offset(record)
            commits.respond(request, results)

        runtime.timers.arm(("store", request.handle), write.due, on_stored)

    def load_and_look(loading: Loading) -> None:
        load(loading)
        after_a_restart(loading, under_way(loading._runtime))

    def keep_only(store: OffsetStore, is_kept: Callable[[OffsetRecord], bool]) -> None:
        for write in under_way(store._runtime):
            write.batch[:] = filter(is_kept, write.batch)

    def remove_offset_under_way(store: OffsetStore, gone: OffsetTombstone) -> None:
        remove_offset(store, gone)
        partition = gone.group, gone.topic, gone.partition
        keep_only(store, lambda record: (record.group, record.topic, record.partition) != partition)

    def delete_under_way(offsets: Offsets, group: Group, results: dict[Partition, Error]) -> Error:
        error = delete(offsets, group, results)
        if not error:
            for partition in (each for each, refused in results.items() if not refused):
                remove_offset_under_way(offsets._ledger, OffsetTombstone(group.group_id, *partition))
        return error

    def remove_group_under_way(store: OffsetStore, gone: GroupTombstone) -> None:
        remove_group(store, gone)
        keep_only(store, lambda record: record.group != gone.group)

    patch.replace(Commits, "handle", handle_slowly)
    patch.replace(Loading, "load", load_and_look)
    patch.replace(Offsets, "delete", delete_under_way)
    patch.replace(OffsetStore, "remove_offset", remove_offset_under_way)
    patch.replace(OffsetStore, "remove_group", remove_group_under_way)


# --- a log that refuses offsets for a while -------------------------------------------------------------------------


def is_armed(runtime: CoordinatorState, timer: str) -> bool:
    """Whether a timer of an environment runs."""
    return timer in runtime.timers._live


def refuse_stable_fetch(offsets: Offsets, request: Request) -> None:
    """Respond to a fetch of stable offsets with NOT_COORDINATOR."""
    offsets._runtime.respond(request, error_body(request, NOT_COORDINATOR))


def refuse_offsets_for_a_while(patch: Patch) -> None:
    """Refuse to write offsets for a while after a restart, and fail fetches of stable offsets."""
    write, load, handle_fetch = CoordinatorState.write, Loading.load, Offsets.handle_fetch

    def write_or_fail(runtime: CoordinatorState, *batch: Record) -> None:
        if is_armed(runtime, OUTAGE) and any(isinstance(record, OffsetRecord) for record in batch):
            raise LogWriteError("the log takes no offsets at the moment")
        write(runtime, *batch)

    def load_into_an_outage(loading: Loading) -> None:
        runtime = loading._runtime
        load(loading)
        if any(True for _ in runtime.log.read()):
            runtime.timers.arm(OUTAGE, runtime.now + OUTAGE_MS, lambda: None)

    def fetch_or_fail(offsets: Offsets, request: Request) -> None:
        if request.body.get("require_stable", False) and is_armed(offsets._runtime, OUTAGE):
            refuse_stable_fetch(offsets, request)
        else:
            handle_fetch(offsets, request)

    patch.replace(CoordinatorState, "write", write_or_fail)
    patch.replace(Loading, "load", load_into_an_outage)
    patch.replace(Offsets, "handle_fetch", fetch_or_fail)


# --- slow loading ---------------------------------------------------------------------------------------------------

LOAD_IN_PROGRESS = 14
_UNGATED = ("FindCoordinator", "InitProducerId")


def is_loaded(runtime: CoordinatorState) -> bool:
    """Whether the groups are loaded."""
    return not is_armed(runtime, LOADING)


def refuse_while_loading(request: Request) -> int:
    """The error of the response to a request while the groups are being loaded."""
    return LOAD_IN_PROGRESS


def load_slowly(patch: Patch) -> None:
    """Load the groups a while after a restart."""
    handle, load = Coordinator.handle, Loading.load

    def load_later(loading: Loading) -> None:
        runtime = loading._runtime
        if any(True for _ in runtime.log.read()):
            runtime.timers.arm(LOADING, runtime.now + LOADING_DELAY_MS, partial(load, loading))

    def handle_when_loaded(coordinator: Coordinator, request: Request, now: int) -> list[Response]:
        runtime = coordinator._runtime
        if request.api in _UNGATED or is_loaded(runtime):
            return handle(coordinator, request, now)
        runtime.now = max(runtime.now, now)
        runtime.respond(request, error_body(request, refuse_while_loading(request)))
        return coordinator._collect()

    patch.replace(Loading, "load", load_later)
    patch.replace(Coordinator, "handle", handle_when_loaded)


PLAIN = Environment("plain", lambda patch: None)
SLOW_ASSIGNMENTS = Environment("slow assignments", store_assignments_slowly, STORE_DELAY_MS, Order.INTERVALS)
SLOW_OFFSETS = Environment("slow offsets", store_offsets_slowly, STORE_DELAY_MS, Order.INTERVALS)
OFFSETS_REFUSED = Environment("offsets refused for a while", refuse_offsets_for_a_while)
SLOW_LOADING = Environment("slow loading", load_slowly, LOADING_DELAY_MS)
ENVIRONMENTS = (PLAIN, SLOW_ASSIGNMENTS, SLOW_OFFSETS, OFFSETS_REFUSED, SLOW_LOADING)


def coordinator_family() -> FaultFamily[Environment]:
    """A family of faults of coordinators, which show in `PLAIN` unless they say otherwise."""
    return FaultFamily(Side.COORDINATOR, PLAIN, lambda environment, patch: environment.install(patch))


# -- responses that contain only an error, for every API ---------------------------------------------------------------


NOT_COORDINATOR = 16
_TOP_ERROR_ENDS = 8
_NAMED_BY_ID_SINCE = 10


def error_body(request: Request, error: int) -> dict[str, Any]:
    """The body of a response to this request that contains only this error."""
    body, alone = request.body, {"error_code": error}
    match request.api:
        case "JoinGroup":
            return responses.join_refused(Error.NONE, body.get("member_id", ""), request.version) | alone
        case "SyncGroup":
            return responses.sync_refused(Error.NONE) | alone
        case "LeaveGroup":
            return {**alone, "members": []}
        case "OffsetCommit" | "TxnOffsetCommit":
            return {"topics": [_refuse_topic(request, topic, error) for topic in body.get("topics", ())]}
        case "OffsetFetch" if request.version >= _TOP_ERROR_ENDS:
            return {"groups": [{"group_id": one["group_id"], "topics": [], **alone} for one in body.get("groups", ())]}
        case "OffsetFetch" | "OffsetDelete":
            return {**alone, "topics": []}
        case "DescribeGroups":
            unknown = (responses.describe_missing_group(group, 0) for group in body.get("groups", ()))
            return {"groups": [row | alone | {"group_state": ""} for row in unknown]}
        case "ListGroups":
            return {**alone, "groups": []}
        case "DeleteGroups":
            return {"results": [{"group_id": name, **alone} for name in dict.fromkeys(body.get("groups_names", ()))]}
    return alone


def _refuse_topic(request: Request, topic: Mapping[str, Any], error: int) -> dict[str, Any]:
    """The rows of a topic in the response to a commit, each with the error."""
    by_id = request.api == "OffsetCommit" and request.version >= _NAMED_BY_ID_SINCE
    name = {"topic_id": topic["topic_id"]} if by_id else {"name": topic["name"]}
    rows = [{"partition_index": row["partition_index"], "error_code": error} for row in topic["partitions"]]
    return name | {"partitions": rows}
