"""The machines that mutants of the core are held against: small, and each for some corner of the protocol."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from types import ModuleType
from typing import Any

import z3

from fencepost.model.classic.core.state import NoResponse, Output
from fencepost.model.classic.explore.coordinator_inputs import OTHER_TYPE, RANGE, JoinOptions, joinings
from fencepost.model.explore.tours import Machine, Reaction
from fencepost.model.proofs.symbolic_values import SymbolicBool, SymbolicNumber, SymbolicToken
from tests.model.mutants.corner_cases import CORNER_CASES, CornerCase
from tests.support.plain_values import build

# -- the connectives as a machine without states: each on every combination of plain and symbolic values ---------------


_FIRST, _SECOND = z3.Bool("first"), z3.Bool("second")
_WORLDS = ((False, False), (False, True), (True, False), (True, True))
TRUTHS = ("true", "false", "first", "second")
TOKENS = ("none", "text", "nobody", "somebody", "any")
NUMBERS = ("0", "2", "any")


@dataclass(frozen=True, slots=True)
class Application:
    """A function and the names of its arguments."""

    function: str
    arguments: tuple[str, ...]


def value_named(name: str) -> Any:
    """What a name stands for."""
    symbols = {
        "first": SymbolicBool(_FIRST),
        "second": SymbolicBool(_SECOND),
        "nobody": SymbolicToken(z3.IntVal(0)),
        "somebody": SymbolicToken(z3.IntVal(1)),
        "any": SymbolicToken(z3.If(_FIRST, z3.IntVal(1), z3.IntVal(0))),
        "3 or 1": SymbolicNumber(z3.If(_FIRST, z3.IntVal(3), z3.IntVal(1))),
    }
    plain = {"true": True, "false": False, "none": None, "text": "text", "0": 0, "2": 2}
    return plain[name] if name in plain else symbols[name]


def applications() -> Iterator[Application]:
    """Every function under every combination."""
    for count in range(4):
        for terms in product(TRUTHS, repeat=count):
            for function in ("and_", "or_", "all_", "any_", "count"):
                yield Application(function, terms)
    for term in TRUTHS:
        yield Application("not_", (term,))
        for then, otherwise in product(TRUTHS, repeat=2):
            yield Application("ite", (term, then, otherwise))
        for guard in TRUTHS:
            yield Application("emit", (term, guard))
    for count in range(4):
        yield from (Application("largest", numbers) for numbers in product(("0", "2", "3 or 1"), repeat=count))
    yield from (Application("absent", (token,)) for token in TOKENS)
    for claims in product(TRUTHS, repeat=2):
        yield from (Application("holds", (place, *claims)) for place in ("0", "1"))
    yield Application("holds", ("0", "none"))


def connectives_machine(logic: ModuleType) -> Machine[None, Application]:
    """The machine whose inputs are applications of the module's connectives, and whose responses are truth tables."""

    def follow(_: None, what: Application, __: int = 0) -> Reaction[None]:
        return Reaction(None, what.function, responses=tuple(truth_table(result_of(logic, what))))

    return Machine(None, tuple(applications()), follow, follow)


def result_of(logic: ModuleType, what: Application) -> Any:
    """What the function gives."""
    function: Callable[..., Any] = getattr(logic, what.function)
    match what.function:
        case "emit":
            output = build(Output, 1, NoResponse(), value_named(what.arguments[1]))
            return function(value_named(what.arguments[0]), output)
        case "holds":
            place, *claims = what.arguments
            return function(None if claims == ["none"] else tuple(value_named(one) for one in claims), int(place))
        case "all_" | "any_" | "count" | "largest":
            return function(value_named(one) for one in what.arguments)
        case _:
            return function(*(value_named(one) for one in what.arguments))


def truth_table(result: Any) -> Iterator[Hashable]:
    """The result in each world: that of two truth values."""
    for world in _WORLDS:
        if isinstance(result, tuple):
            yield tuple((output.handle, output.response) for output in result if evaluate_in(output.when, world))
        else:
            yield evaluate_in(result, world)


def evaluate_in(result: Any, world: tuple[bool, bool]) -> Hashable:
    """A plain or symbolic value, where the two truth values are known."""
    term = getattr(result, "term", None)
    if term is None:
        assert isinstance(result, int | str | None)
        return result
    known = [(symbol, z3.BoolVal(one)) for symbol, one in zip((_FIRST, _SECOND), world, strict=True)]
    plain = z3.simplify(z3.substitute(term, *known))
    return bool(z3.is_true(plain)) if z3.is_bool(plain) else int(plain.as_long())


# -- coordinators and members ------------------------------------------------------------------------------------------


LOGIC = "fencepost.model.logic"
MEMBERS = "fencepost.model.classic.member.member"
COORDINATOR = "fencepost.model.classic.explore.coordinator_tour"
MEMBER = "fencepost.model.classic.explore.member_tour"
OLDER = dict.fromkeys(
    (
        "sync_in_stable_keeps_session",
        "initial_delay_grows_always",
        "batch_leave_settles_once",
        "pending_leave_rebalances",
        "eviction_waits",
        "expiry_cuts_initial_delay",
        "unselected_protocol_fits_any",
    ),
    False,
)
"""The older of the two reference coordinators, as far as the core goes."""
LOOSE = dict.fromkeys(
    (
        "initial_delay_grows",
        "replaced_sync_is_missed",
        "replaced_stays_new",
        "restart_needs_room",
        "room_comes_before_protocols",
    ),
    False,
)
"""What the other one does, or neither of them."""
AT_ONCE = dict.fromkeys(("eviction_waits", "initial_delay_grows_always"), False)
"""The older one, as far as it lets go of members and takes others in."""
PLAIN = joinings(1)
PATIENT = (JoinOptions(session_timeout=20_000, rebalance_timeout=4_000),)
HASTY = JoinOptions(metadata=1, rebalance_timeout=2_000)
DIRECT = (JoinOptions(requires_id=False, can_skip=False, rebalance_timeout=4_000),)
MIXED = (*DIRECT, JoinOptions(metadata=1))
SLOW = (JoinOptions(), JoinOptions(session_timeout=7_000, rebalance_timeout=12_000, metadata=1))
SLOWER = (*DIRECT, JoinOptions(requires_id=False, can_skip=False, rebalance_timeout=5_000))
LONG = (JoinOptions(requires_id=False),)
CROWD = (JoinOptions(), *DIRECT)
CHANGED = tuple(JoinOptions(("a", name), requires_id=False, alike=True) for name in "bc")
JOINS, MOMENTS = ("join", "leave", "wait"), ("join", "wait", "rest")
BRIEF = ("join", "sync", "leave", "wait", "rest", "look")
AB, BA, B = JoinOptions(("a", "b")), JoinOptions(("b", "a")), JoinOptions(("b",))
ODD = (
    JoinOptions(),
    JoinOptions(()),
    JoinOptions(protocol_type=None),
    JoinOptions(protocol_type=OTHER_TYPE),
    JoinOptions(("a", RANGE)),
)
NOON = 43_200_000
ROUNDS = ("join", "sync", "leave", "wait", "look")

Given = tuple[tuple[Any, ...], dict[str, Any]]
"""What a universe or the settings of a member are made with. A mutant makes its own of it: defaults are mutated too."""


def make_arguments(*places: Any, **names: Any) -> Given:
    """What is given."""
    return places, names


UNIVERSES: Mapping[str, Given] = {
    "one member": make_arguments(1, 2, joinings(2), odd=True, fires=True, rests=True, clock=NOON),
    "odd joins": make_arguments(1, 1, ODD, instances=1, only=ROUNDS, strangers=False),
    "newcomers": make_arguments(3, 1, DIRECT, only=("join", "wait", "look"), strangers=False, rests=True, clock=NOON),
    "newcomers, older": make_arguments(3, 2, DIRECT, only=("join", "wait", "look"), strangers=False, dialect=OLDER),
    "two members": make_arguments(2, 1, PLAIN, odd=True, fires=True),
    "two rounds": make_arguments(2, 2, PLAIN),
    "leader chosen": make_arguments(3, 2, DIRECT, leader=3, only=("join", "leave", "wait"), strangers=False),
    "full": make_arguments(2, 2, PATIENT, max_group_size=1),
    "older": make_arguments(2, 2, PATIENT, dialect=OLDER, strangers=False),
    "full, older": make_arguments(2, 1, PLAIN, max_group_size=1, dialect=OLDER, clock=NOON),
    "votes": make_arguments(
        3, 1, tuple(replace(one, requires_id=False) for one in (AB, BA, B)), only=("join", "wait"), strangers=False
    ),
    "protocol chosen": make_arguments(2, 1, (AB, BA, B), protocol="b", only=ROUNDS, strangers=False),
    "timeouts": make_arguments(2, 1, (*PATIENT, HASTY), only=("join", "sync", "wait"), strangers=False),
    "odd static": make_arguments(1, 1, PLAIN, instances=1, odd=True, fires=True, clock=NOON),
    "static": make_arguments(2, 1, PLAIN, instances=1),
    "patient static": make_arguments(
        2, 2, PATIENT, instances=1, only=("join", "leave", "wait"), strangers=False, clock=NOON
    ),
    "static follower": make_arguments(3, 1, DIRECT, instances=1, only=("join", "sync", "wait"), strangers=False),
    "static, loose": make_arguments(2, 1, PLAIN, instances=1, dialect=LOOSE, max_group_size=1, strangers=False),
    "static, votes": make_arguments(2, 1, (AB, BA), instances=1, only=ROUNDS, strangers=False),
    "two static": make_arguments(2, 1, PLAIN, instances=2, only=ROUNDS, strangers=False),
    "static, full": make_arguments(2, 1, PLAIN, instances=1, max_group_size=1, strangers=False),
    "old clients": make_arguments(2, 1, MIXED, only=("join", "sync", "wait", "look"), strangers=False),
    "old static client": make_arguments(2, 1, MIXED[:1], instances=1, strangers=False),
    "leader gone": make_arguments(3, 1, DIRECT, leader=2, only=("join", "leave", "wait"), strangers=False),
    "changed protocols": make_arguments(2, 1, CHANGED, only=("join", "sync", "wait"), strangers=False),
    "brief newcomers": make_arguments(2, 1, DIRECT, only=BRIEF, strangers=False, rests=True, new_member_timeout=2_000),
    "brief newcomers, older": make_arguments(
        2, 1, DIRECT, only=BRIEF, strangers=False, new_member_timeout=2_000, dialect=OLDER
    ),
    "static, changed vote": make_arguments(2, 2, (AB, BA), instances=1, only=("join", "sync", "wait"), strangers=False),
    "brief static": make_arguments(
        2, 1, SLOW, instances=1, only=MOMENTS, strangers=False, rests=True, new_member_timeout=2_000
    ),
    "newcomers, long": make_arguments(4, 1, LONG, only=("join", "wait"), strangers=False),
    "static, later": make_arguments(3, 1, SLOWER, instances=1, only=("join", "wait"), strangers=False),
    "crowded": make_arguments(3, 2, CROWD, max_group_size=1, only=JOINS, strangers=False),
    "crowded, at once": make_arguments(3, 2, CROWD, max_group_size=1, only=JOINS, strangers=False, dialect=AT_ONCE),
}
"""Coordinators, by what they are for."""

SETTINGS: Mapping[str, tuple[Given, int, int]] = {
    "eager member": (make_arguments(("range",)), 1, 2),
    "cooperative member": (make_arguments(("cooperative-sticky",), cooperative=True), 1, 2),
    "two partitions": (make_arguments(("cooperative-sticky",), cooperative=True), 2, 1),
    "static member": (make_arguments(("a", "b"), False, "instance", "other", 7_000, 8_000, False, False), 1, 1),
}
"""Members with their settings, partitions and generations."""

CONNECTIVES, PARTITIONS = "connectives", "no partitions"
NAMES = (CONNECTIVES, PARTITIONS, *SETTINGS, *UNIVERSES, *CORNER_CASES)
MODULES = (LOGIC, MEMBERS, COORDINATOR, MEMBER)


def module_of(name: str) -> str:
    """The module that has the machine."""
    alone = {CONNECTIVES: LOGIC, PARTITIONS: MEMBERS}
    return alone.get(name, MEMBER if name in SETTINGS else COORDINATOR)


def machine(name: str, module: ModuleType) -> Machine[Any, Any]:
    """A machine, made by the shipped module or by a copy that has a mutant below it."""
    make: Callable[..., Machine[Any, Any]]
    if name == CONNECTIVES:
        return connectives_machine(module)
    if name == PARTITIONS:
        return partitions_machine(module)
    if name in UNIVERSES:
        make = module.coordinator_machine
        return make(universe(module, *UNIVERSES[name]))
    if name in CORNER_CASES:
        return corner_machine(module, CORNER_CASES[name])
    (places, names), partitions, generations = SETTINGS[name]
    make = module.member_machine
    return make(module.MemberSettings(*places, **names), partitions, generations)


def partitions_machine(members: ModuleType) -> Machine[None, tuple[bool, ...]]:
    """No partition, of some: a function of the core that the core itself has no use for."""

    def follow(_: None, parts: tuple[bool, ...], __: int = 0) -> Reaction[None]:
        return Reaction(None, "nothing", responses=members.no_partitions(parts))

    return Machine(None, ((), (False,), (True,), (False, True)), follow, follow)


def universe(module: ModuleType, places: tuple[Any, ...], names: Mapping[str, Any]) -> Any:
    """A universe with its own dialect."""
    made = module.Universe(*places, **{key: value for key, value in names.items() if key != "dialect"})
    return replace(made, dialect=replace(made.dialect, **names.get("dialect", {})))


def corner_machine(module: ModuleType, corner: CornerCase) -> Machine[Any, Any]:
    """A coordinator that is asked some of the inputs of its universe."""
    whole = module.coordinator_machine(universe(module, corner.arguments, corner.options))
    state = whole.initial
    for given in corner.setup_inputs:
        state = whole.follow(state, given, 0).state
    if corner.is_table_reversed:
        state = replace(state, group=replace(state.group, slots=state.group.slots[::-1]))
    machine: Machine[Any, Any] = replace(whole, initial=state, inputs=corner.inputs)
    return machine
