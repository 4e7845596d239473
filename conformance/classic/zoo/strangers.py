"""Strangers of the classic protocol: the differences that a correct coordinator may have from the bundled one.

None of these differences breaks a requirement, so that a run that fails for one of them is a false alarm. Where the
catalogue leaves something to a coordinator, or two of its sentences apply at once, there is a difference for it.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from random import Random
from typing import Any, TypeAlias

from fencepost.adapters import in_process
from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.classic.coordinator_state import CoordinatorState
from fencepost.adapters.classic.group import Group
from fencepost.adapters.classic.membership import Joining
from fencepost.adapters.classic.messages import JoinGroup
from fencepost.adapters.in_process import OFFERED
from fencepost.adapters.serve import cluster, server
from fencepost.adapters.serve.cluster import ServedCluster
from fencepost.adapters.serve.coordination import LOCAL, Node, Request, Response
from fencepost.adapters.serve.server import Server
from fencepost.adapters.target import Description, SettingOrigin
from fencepost.conformance.classic.zoo.bugs.environments import ENVIRONMENTS, PLAIN, CrashingTarget, Environment
from fencepost.conformance.classic.zoo.variants import VARIANTS
from fencepost.conformance.zoo.fault import Fault, Patch, Shipped, instead_of
from fencepost.conformance.zoo.strangers import Difference, Disguise, Value
from fencepost.model.errors import Error
from fencepost.model.settings import Settings

# --- what a description says


def describe_as(disguise: Disguise, change: Callable[[Description], Description]) -> None:
    """Have the target describe itself with a change."""
    shipped = CrashingTarget.open

    async def open_changed(target: CrashingTarget) -> Description:
        return change(await shipped(target))

    disguise.patch.replace(CrashingTarget, "open", open_changed)


def offer_versions(disguise: Disguise, versions: Mapping[str, tuple[int, int]]) -> None:
    """Have the target offer these versions of the APIs in `OFFERED` at most, in this process and over the network."""
    disguise.patch.replace(in_process, "OFFERED", limit_versions(in_process.OFFERED, versions))
    for module in (cluster, server):
        served = limit_versions(vars(module)["OFFERED_VERSIONS"], versions)
        disguise.patch.replace(module, "OFFERED_VERSIONS", served)


def limit_versions(
    offered: Mapping[str, tuple[int, int]], limits: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """What is left of the versions that are offered; APIs that this protocol does not know stay as they are."""
    kept: dict[str, tuple[int, int]] = {}
    for api, (low, high) in offered.items():
        lowest, highest = limits.get(api, (0, -1) if api in OFFERED else (low, high))
        if max(low, lowest) <= min(high, highest):
            kept[api] = (max(low, lowest), min(high, highest))
    return kept


OLD_CEILINGS: Mapping[str, int] = {
    "OffsetCommit": 4,
    "OffsetFetch": 4,
    "FindCoordinator": 2,
    "JoinGroup": 3,
    "Heartbeat": 2,
    "LeaveGroup": 2,
    "SyncGroup": 2,
    "DescribeGroups": 2,
    "ListGroups": 2,
    "DeleteGroups": 1,
    "TxnOffsetCommit": 1,
    "InitProducerId": 1,
    "AddOffsetsToTxn": 1,
    "EndTxn": 1,
}
"""The highest versions of Apache Kafka 2.0."""
NEW_FLOORS: Mapping[str, int] = {
    "OffsetCommit": 2,
    "JoinGroup": 2,
    "DescribeGroups": 0,
    "FindCoordinator": 0,
}
"""The lowest versions of Apache Kafka 4.0, where they are not 0 or 1."""
TRANSACTIONAL = ("TxnOffsetCommit", "InitProducerId", "AddOffsetsToTxn", "EndTxn")


def offer_old_versions(age: Value, disguise: Disguise) -> None:
    """The highest versions are those of 2.0, or each is drawn."""
    chance = Random(age)
    ceilings = OLD_CEILINGS if age == "2.0" else {api: chance.randint(*OFFERED[api]) for api in OFFERED}
    if age != "2.0":
        ceilings = {**ceilings, "Metadata": OFFERED["Metadata"][1], "FindCoordinator": OFFERED["FindCoordinator"][1]}
    offer_versions(disguise, {api: (low, ceilings.get(api, high)) for api, (low, high) in OFFERED.items()})


def offer_no_old_versions(age: Value, disguise: Disguise) -> None:
    """The lowest versions are those of 4.0."""
    offer_versions(disguise, {api: (NEW_FLOORS.get(api, low), high) for api, (low, high) in OFFERED.items()})


def leave_out_apis(apis: Value, disguise: Disguise) -> None:
    """Some APIs are missing."""
    missing = str(apis).split(" ")
    offer_versions(disguise, {api: bounds for api, bounds in OFFERED.items() if api not in missing})


def have_nodes(count: Value, disguise: Disguise) -> None:
    """So many nodes make the cluster."""
    disguise.nodes = int(count)
    others = (Node(LOCAL.node_id + each, LOCAL.host, LOCAL.port + each) for each in range(1, disguise.nodes))
    nodes = (LOCAL, *others)  # a coordinator knows the first one by its identity
    disguise.patch.replace(in_process, "NODES", nodes)
    if len(nodes) == 1:
        describe_as(disguise, lambda description: replace(description, can_move=False))


def stay_up(value: Value, disguise: Disguise) -> None:
    """Nobody can restart it."""
    describe_as(disguise, lambda description: replace(description, can_restart=False))


def tell_no_settings(told: Value, disguise: Disguise) -> None:
    """There is no DescribeConfigs: limits are measured, retention is not, the initial delay only if it is "probed"."""
    measured = ("min_session_timeout", "max_session_timeout", "max_group_size", "max_offset_metadata")
    known = {*measured, "initial_rebalance_delay"} if told == "probed" else set(measured)

    def forget(description: Description) -> Description:
        values = {name: getattr(description.settings, name) for name in known}
        names = Settings.__dataclass_fields__
        origins = {name: SettingOrigin.PROBE if name in known else SettingOrigin.NOT_TOLD for name in names}
        origins["new_member_timeout"] = SettingOrigin.CONSTANT
        return replace(description, settings=Settings(**values), origins=origins)

    describe_as(disguise, forget)
    for module in (cluster, server):
        offered = vars(module)["OFFERED_VERSIONS"]
        untold = {api: bounds for api, bounds in offered.items() if api != "DescribeConfigs"}
        disguise.patch.replace(module, "OFFERED_VERSIONS", untold)


def accept_what_exists(value: Value, disguise: Disguise) -> None:
    """CreateTopics says that all is well for a topic that is there."""
    shipped = ServedCluster.create_topics

    def create(served: ServedCluster, body: Mapping[str, Any]) -> Mapping[str, Any]:
        rows = shipped(served, body)["topics"]
        exists = Error.TOPIC_ALREADY_EXISTS
        return {"topics": [{**row, "error_code": 0} if row.get("error_code") == exists else row for row in rows]}

    disguise.patch.replace(ServedCluster, "create_topics", create)


# --- settings


def set_initial_delay(milliseconds: Value, disguise: Disguise) -> None:
    """Another initial delay."""
    disguise.settings["initial_rebalance_delay"] = int(milliseconds)


def set_group_size(size: Value, disguise: Disguise) -> None:
    """Another limit of the size of a group."""
    disguise.settings["max_group_size"] = int(size)


def set_session_bounds(bounds: Value, disguise: Disguise) -> None:
    """Other bounds of the session timeout."""
    low, high = map(int, str(bounds).split(" "))
    disguise.settings |= {"min_session_timeout": low, "max_session_timeout": high}


def set_retention(times: Value, disguise: Disguise) -> None:
    """Other times of retention and clean-up."""
    retention, interval = map(int, str(times).split(" "))
    disguise.settings |= {"offsets_retention": retention, "retention_check_interval": interval}


# --- member ids

MakeId: TypeAlias = Callable[[str], str]
"""Makes a member id that begins with the client id, if it likes."""


def change_ids(patch: Patch, change: Callable[[MakeId], MakeId]) -> None:
    """Have a coordinator make member ids in another way than the shipped one."""
    shipped = CoordinatorState.__init__

    def make_state(state: CoordinatorState, settings: Settings, log: Any, new_id: MakeId, *given: Any) -> None:
        shipped(state, settings, log, change(new_id), *given)

    patch.replace(CoordinatorState, "__init__", make_state)


def make_ids(form: Value, disguise: Disguise) -> None:
    """Member ids of another form."""
    numbers = count(1)

    def new_id(prefix: str) -> str:
        number = next(numbers)
        match form:
            case "digits":
                return str(number)
            case "uuid":
                return f"{number * 0x9E3779B97F4A7C15 % (1 << 128):032x}"
            case "long":
                return f"{prefix}-{number:08d}".ljust(200, "x")
            case "slashes":
                return f"/{prefix}//{number}/"
        return f"mitglied№{number}"

    change_ids(disguise.patch, lambda shipped: new_id)


# --- when responses come


def deliver_late(disguise: Disguise, due: Callable[[int], int], longest: int, is_reversed: bool = False) -> None:
    """Deliver responses at the time that `due` makes of the present one, in milliseconds."""
    disguise.delay(longest)
    for target in (CrashingTarget, Server):

        def deliver(self: Any, responses: Iterable[Response], shipped: Callable[..., None] = target._deliver) -> None:
            known = list(responses)[:: -1 if is_reversed else 1]
            now = self._now()
            if known:
                asyncio.get_running_loop().call_later((due(now) - now) / 1000, shipped, self, known)

        disguise.patch.replace(target, "_deliver", deliver)


def respond_slowly(milliseconds: Value, disguise: Disguise) -> None:
    """Every response takes a while."""
    deliver_late(disguise, lambda now: now + int(milliseconds), int(milliseconds))


def respond_in_bursts(milliseconds: Value, disguise: Disguise) -> None:
    """Responses are sent at the next multiple of a time, the last one first."""
    every = int(milliseconds)
    deliver_late(disguise, lambda now: -(-now // every) * every, every, is_reversed=True)


def tick_coarsely(milliseconds: Value, disguise: Disguise) -> None:
    """Timers fire at multiples of a time only."""
    shipped, every = Coordinator.next_deadline, int(milliseconds)
    disguise.delay(every)

    def next_deadline(coordinator: Coordinator) -> int | None:
        deadline = shipped(coordinator)
        return None if deadline is None else -(-deadline // every) * every

    disguise.patch.replace(Coordinator, "next_deadline", next_deadline)


def run_in(name: Value, disguise: Disguise) -> None:
    """An environment of the zoo."""
    environment = next(each for each in ENVIRONMENTS if each.name == name)
    environment.install(disguise.patch)
    disguise.allow(environment.grace, environment.order)


# --- what the catalogue leaves to a coordinator


def list_backwards(value: Value, disguise: Disguise) -> None:
    """Rows of a response that no request lists stand in reverse order."""
    shipped = CoordinatorState.respond
    rows = {"JoinGroup": "members", "ListGroups": "groups"}

    def respond(state: CoordinatorState, request: Request, body: dict[str, Any]) -> None:
        name = rows.get(request.api, "")
        if name in body:
            body = {**body, name: body[name][::-1]}
        elif request.api == "DescribeGroups":
            body = {**body, "groups": [{**each, "members": each["members"][::-1]} for each in body["groups"]]}
        shipped(state, request, body)

    disguise.patch.replace(CoordinatorState, "respond", respond)


def throttle(milliseconds: Value, disguise: Disguise) -> None:
    """Responses ask clients to slow down."""
    shipped = CoordinatorState.respond

    def respond(state: CoordinatorState, request: Request, body: dict[str, Any]) -> None:
        shipped(state, request, {**body, "throttle_time_ms": int(milliseconds)})

    disguise.patch.replace(CoordinatorState, "respond", respond)


@instead_of(Joining.join_group)
def look_at_protocols_first(shipped: Shipped[None], joining: Joining, group: Group, join: JoinGroup) -> None:
    """A JoinGroup with unsupported protocols to a full group: the protocols count."""
    if group.supports(join.protocol_type, join.protocols):
        shipped(joining, group, join)
    else:
        joining.refuse(join, Error.INCONSISTENT_GROUP_PROTOCOL, join.member_id)


def be_variant(variant: Fault[Environment], value: Value, disguise: Disguise) -> None:
    """A correct variant of the coordinator."""
    variant.apply(disguise.patch)
    disguise.allow(variant.setting.grace, variant.setting.order)


# --- all of them

DIFFERENCES: tuple[Difference, ...] = (
    Difference("initial delay", (100, 0, 1_500, 3_000), set_initial_delay),
    Difference("CreateTopics accepts what exists", ("",), accept_what_exists),
    Difference("session bounds", ("1000 60000", "100 1800000", "6000 300000"), set_session_bounds),
    Difference("group size", (8, 4, 12, 2_147_483_647), set_group_size),
    Difference("retention", ("60000 5000", "120000 60000", "604800000 600000"), set_retention),
    Difference("no DescribeConfigs", ("probed", "not told"), tell_no_settings),
    Difference("old versions", ("2.0", *map(str, range(20))), offer_old_versions),
    Difference("no old versions", ("4.0",), offer_no_old_versions),
    Difference(
        "missing APIs",
        (
            "OffsetDelete",
            "DeleteGroups",
            "ListGroups",
            "DescribeGroups ListGroups DeleteGroups",
            " ".join(TRANSACTIONAL),
        ),
        leave_out_apis,
    ),
    Difference("nodes", (1, 3), have_nodes),
    Difference("no restart", ("",), stay_up),
    Difference("member ids", ("digits", "uuid", "slashes", "long", "other letters"), make_ids),
    Difference("slow responses", (20, 100, 400), respond_slowly),
    Difference("bursts", (20, 100, 300), respond_in_bursts),
    Difference("coarse timers", (50, 200), tick_coarsely),
    Difference("environment", tuple(each.name for each in ENVIRONMENTS if each is not PLAIN), run_in),
    Difference("rows backwards", ("",), list_backwards),
    Difference("throttled", (5, 30_000), throttle),
    Difference("protocols before capacity", ("",), lambda value, disguise: look_at_protocols_first(disguise.patch)),
    *(Difference(each.id, ("",), partial(be_variant, each)) for each in VARIANTS.values() if not each.breaks),
)
