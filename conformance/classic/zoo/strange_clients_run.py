"""A run on a strange client, as `fencepost test-client bundled` has it, and the names that its faults may have.

The names are measured without asking the judge for one. Every scenario is played with the fault and without it, and the
steps that the client's model takes are laid side by side. The rules of the first step that differs have requirements:
these are the fault's own names, beside those that the zoo knows for it and those that the changed function cites. The
requirements of rules that apply more or less often from there on are broken as a consequence. The fetcher has no rules:
where a fault changes what is fetched, the requirements of fetching and of returning records follow from it as well.
Assignors have none either: their names are the checks of plans that they fail by themselves, without a group.
"""

import ast
import asyncio
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import count
from types import SimpleNamespace
from typing import Any

from fencepost.adapters.classic.client import client
from fencepost.adapters.classic.client.driver import ReferenceDriver
from fencepost.adapters.serve import server
from fencepost.adapters.virtual_clock import run_virtual, run_virtual_in_thread
from fencepost.conformance.assignors.run import AssignorTest
from fencepost.conformance.classic.clients import CLASSIC_CLIENTS, DRIVEN_CLIENTS, SCENARIOS
from fencepost.conformance.classic.zoo.client_stand import RANDOM_GROUPS, ClientFault, make_player, with_fault
from fencepost.conformance.classic.zoo.clients import CLIENT_BUGS, reference
from fencepost.conformance.classic.zoo.coordinator_stand import skip_judging
from fencepost.conformance.classic.zoo.strange_clients import CLIENT_DIFFERENCES, SETTINGS
from fencepost.conformance.classic.zoo.strangers_faults import find_function, is_in_one_function
from fencepost.conformance.classic.zoo.strangers_run import drop_event, outcome_of, plan_for
from fencepost.conformance.clients import stage
from fencepost.conformance.clients.run import ClientRun
from fencepost.conformance.clients.stage import ClientFacts, ClientPlayer
from fencepost.conformance.plan import BUNDLED
from fencepost.conformance.results import EndKind, Report
from fencepost.conformance.subject import Scenario
from fencepost.conformance.zoo.fault import Fault, Patch, Side, mutant_fault
from fencepost.conformance.zoo.measuring import CpuLimitExceeded, cpu_limit
from fencepost.conformance.zoo.mutants import Mutant, apply_mutant, source_of
from fencepost.conformance.zoo.strangers import (
    Differences,
    FaultNames,
    Stranger,
    StrangerKind,
    StrangerOutcome,
    find_fault,
    play_named,
    put_in_differences,
)
from fencepost.model.assignors.group import Assign, Assignment, ClusterTopics, GroupMember
from fencepost.model.assignors.registry import Assignor
from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE, MEMBER_RULES
from fencepost.model.classic.member.settings import ClientSettings
from fencepost.traces.classic.client import standings
from fencepost.traces.events import Event, Kind

MAX_SECONDS = 5.0
"""The seconds of one core that a scenario is played for."""
USES = frozenset({"Heartbeat", "OffsetFetch", "OffsetCommit", "Fetch"})
"""The requests that a member sends once it has an assignment."""
OF_FETCHER = frozenset(id for id in CLIENT_CATALOGUE if id.startswith(("POLL-", "PREFETCH-")))
"""The requirements of what is fetched and returned."""
OF_GROUP = {
    "CALLBACK-14": {"CALLBACK-02", "COOP-01", "COOP-02"},
    "MCOMMIT-21": {"MCOMMIT-01", "MCOMMIT-02", "MCOMMIT-18"},
}
"""What a whole group keeps, so that no rule of a member has it: it follows from what a member gives up or commits."""
CITED = re.compile(r"\b[A-Z]+\d?-\d+\b")

# --- faults


def put_in_mutant(mutant: Mutant, patch: Patch) -> None:
    """Put one changed function into the shipped module, so that it goes together with every other fault. Raises any
    exception if it cannot be made."""
    module = sys.modules[mutant.module]
    owner, _, name = mutant.function.rpartition(".")
    node = find_function(apply_mutant(source_of(mutant.module), mutant), mutant.function)
    made: dict[str, Any] = {}
    exec(compile(ast.Module([node], []), module.__file__ or mutant.module, "exec"), module.__dict__, made)
    reference.replace_function(patch, getattr(getattr(module, owner) if owner else module, name), made[name])


@cache
def client_pools() -> Mapping[str, Mapping[str, ClientFault]]:
    """The faults of each origin by their ids."""
    mutants = (each for each in reference.member_mutants() if is_in_one_function(each) and not is_assertion(each))
    faults = (mutant_fault(each, Side.MEMBER, reference.EAGER, put_in_mutant) for each in mutants)
    return {"bugs": CLIENT_BUGS, "mutants": {fault.id: fault for fault in faults}}


def is_assertion(mutant: Mutant) -> bool:
    """Whether the mutant changes what the model takes for granted: a client that fails there stops in mid-step, which
    no implementation does."""
    node: Any = ast.parse(source_of(mutant.module))
    for name, place in mutant.path:
        if isinstance(node, ast.Assert):
            return True
        node = getattr(node, name) if place is None else getattr(node, name)[place]
    return False


def fault_with(id: str) -> ClientFault:
    """The fault with this id."""
    return find_fault(client_pools(), id)


def put_in_fault(fault: ClientFault, patch: Patch) -> None:
    """Put a fault into this process; one of an assignor is in force while a client makes its plan, and not while the
    judge looks at that."""
    if fault.subject is not Side.ASSIGNOR:
        fault.apply(patch)
        return

    def make_faulty(shipped: Assign) -> Assign:
        def assign(members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
            with fault.activate():
                return shipped(members, cluster)

        return assign

    known: Mapping[str, Assignor] = vars(client)["ASSIGNORS"]
    faulty = {name: replace(one, assign=make_faulty(one.assign)) for name, one in known.items()}
    patch.replace(client, "ASSIGNORS", faulty)


class ListingPatch(Patch):
    """A patch that lists the functions that it replaces, each with its owner."""

    def __init__(self) -> None:
        super().__init__()
        self.places: set[tuple[int, str]] = set()

    def replace(self, owner: object, name: str, value: Any) -> None:
        """Give an attribute another value."""
        if owner is not standings:  # the judge, which keeps the member that is proved
            self.places.add((id(owner), name))
        super().replace(owner, name, value)


@cache
def places_of(fault: ClientFault) -> frozenset[tuple[int, str]]:
    """What a fault replaces; nothing if it cannot be made."""
    with ListingPatch() as patch:
        try:
            put_in_fault(fault, patch)
        except Exception:  # a mutant may raise anything
            return frozenset()
        return frozenset(patch.places)


def goes_with(fault: Fault[Any], others: Sequence[Fault[Any]], differences: Sequence[str]) -> bool:
    """Whether a fault fits beside others: they show in the same settings, and none takes the place of another."""
    if any(places_of(fault) & places_of(each) for each in others):
        return False
    needs = {each.setting for each in (fault, *others)} - {reference.EAGER}
    return not needs or (len(needs) == 1 and not SETTINGS & set(differences))


def base_settings(faults: Sequence[ClientFault]) -> ClientSettings:
    """The settings in which some faults show."""
    special = (fault.setting for fault in faults if fault.setting != reference.EAGER)
    return replace(next(special, reference.EAGER), request_timeout=10_000)


# --- what the client does, not judged


@dataclass(frozen=True, slots=True)
class Course:
    """What a client does in a scenario: the steps of its model, each with its rules, and all events."""

    steps: tuple[tuple[Any, ...], ...] = ()
    events: tuple[Event, ...] = ()

    def events_without_reasons(self) -> list[Event]:
        """The events, of which no request says in words why it is sent."""
        return [
            replace(each, body=drop_reasons(each.body)) if "reason" in str(each.body) else each for each in self.events
        ]

    def rules(self, begin: int) -> Counter[str]:
        """How often each rule applies from a step on."""
        return Counter(rule for _, rules, _ in self.steps[begin:] for rule in rules)

    def fetched_offsets(self) -> frozenset[tuple[str, int, int]]:
        """The offsets that are fetched, with the topic and the partition of each."""
        fetches = (each for each in self.events if each.kind is Kind.REQUEST and each.api == "Fetch")
        topics = (topic for fetch in fetches for topic in fetch.body["topics"])
        return frozenset(
            (topic["topic"], row["partition"], row["fetch_offset"]) for topic in topics for row in topic["partitions"]
        )


def differ_in_events(some: Iterable[Course], others: Iterable[Course]) -> bool:
    """Whether two clients do anything else in a scenario, whatever reasons they give in words."""
    pairs = zip(some, others, strict=True)
    return any(one.events_without_reasons() != other.events_without_reasons() for one, other in pairs)


def drop_reasons(value: Any) -> Any:
    """A body without reasons in words."""
    if isinstance(value, Mapping):
        return {name: drop_reasons(each) for name, each in value.items() if name != "reason"}
    return [drop_reasons(each) for each in value] if isinstance(value, list) else value


def course_of(settings: ClientSettings, scenario: Scenario) -> Course:
    """What the client that is active in this process does in a scenario. Raises `CpuLimitExceeded` if it hangs."""
    steps: list[tuple[Any, ...]] = []
    take, numbers = ReferenceDriver.take_step, count(1)

    def take_step(driver: ReferenceDriver, given: Any) -> Any:
        step = take(driver, given)
        steps.append((given, step.rules, step.outputs))
        return step

    names = tuple(strategy.name for strategy in settings.strategies)
    facts = ClientFacts(names, settings.session_timeout, settings.rebalance_timeout, settings.instance is not None)
    with Patch() as patch:
        patch.replace(ReferenceDriver, "take_step", take_step)
        patch.replace(stage, "uuid4", lambda: SimpleNamespace(hex="00000000"))
        patch.replace(server, "uuid", SimpleNamespace(uuid4=lambda: next(numbers)))
        try:
            with cpu_limit(MAX_SECONDS):
                run = run_virtual(make_player(settings, facts).play(scenario, "", skip_judging))
        except CpuLimitExceeded:
            raise
        except Exception:  # a mutant may raise anything
            return Course()
    return Course(tuple(steps), run.events)


def courses_of(
    settings: ClientSettings, differences: Differences = (), faults: Sequence[ClientFault] = ()
) -> Iterator[Course]:
    """What a client with differences and faults does in each scenario. Raises `CpuLimitExceeded` if it hangs, and
    whatever keeps it from being made."""
    for scenario in SCENARIOS:
        with Patch() as patch:
            put_in_differences(CLIENT_DIFFERENCES, differences, patch)
            for fault in faults:
                put_in_fault(fault, patch)
            course = course_of(settings, scenario)
        yield course


@lru_cache(4)
def shipped_courses(settings: ClientSettings, differences: Differences) -> tuple[Course, ...]:
    """What a client with differences and without faults does in each scenario, kept for the next question."""
    return tuple(courses_of(settings, differences))


# --- names


@cache
def names_of(faults: tuple[ClientFault, ...], differences: Differences = ()) -> FaultNames | None:
    """The names of some faults together, alone or beside differences, which change what shows where; None if they show
    in no scenario, or nothing can be played as they hang or have the client refuse its settings."""
    settings = base_settings(faults)
    shipped = shipped_courses(settings, differences)
    try:
        faulty = tuple(courses_of(settings, differences, faults))
    except (Exception, CpuLimitExceeded):  # it cannot be made, or hangs
        return None
    plays = any(each.events for each in faulty)
    if not plays or not differ_in_events(shipped, faulty):
        return None
    own = {id for fault in faults for id in (*fault.breaks, *cited_by(fault), *broken_plans(fault, settings))}
    later: set[str] = set()
    for before, after in zip(shipped, faulty, strict=True):
        pairs = enumerate(zip(before.steps, after.steps, strict=False))
        first = next((place for place, (one, other) in pairs if one != other), None)
        if first is not None:
            own |= set(requirements_of((*before.steps[first][1], *after.steps[first][1])))
            known, seen = before.rules(first), after.rules(first)
            later |= set(requirements_of((known - seen) | (seen - known)))
        if before.fetched_offsets() != after.fetched_offsets():
            later |= OF_FETCHER
    later |= {id for id, causes in OF_GROUP.items() if own & causes}
    return FaultNames(frozenset(own), frozenset(later - own))


@cache
def broken_plans(fault: ClientFault, settings: ClientSettings) -> frozenset[str]:
    """What the plans of an assignor with this fault break, for each assignor that a client offers."""
    if fault.subject is not Side.ASSIGNOR:
        return frozenset()
    names = {strategy.name for strategy in settings.strategies}
    tests = (AssignorTest(each, with_fault(each, fault.activate), RANDOM_GROUPS, 0) for each in sorted(names))
    return frozenset(result.id for test in tests for result in test.run().failed_results())


def requirements_of(rules: Any) -> Iterator[str]:
    """The requirements of some rules. A mutant may give a rule of the proved member that no client has."""
    for rule in rules:
        yield from MEMBER_RULES[rule].requirements if rule in MEMBER_RULES else ()


def cited_by(fault: ClientFault) -> Iterator[str]:
    """The requirements that the function cites which a mutant changes."""
    if fault.mutant is not None:
        tree = ast.parse(source_of(fault.mutant.module))
        node = find_function(tree, fault.mutant.function)
        lines = source_of(fault.mutant.module).splitlines()[node.lineno - 1 : node.end_lineno]
        yield from (id for line in lines for id in CITED.findall(line) if id in CLIENT_CATALOGUE)


# --- the run


def play_stranger(stranger: Stranger) -> StrangerOutcome:
    """Put differences and faults into this process, test, and take them out again."""
    return play_named(stranger, fault_with, names_of, play_faulty, shows_on, names_beside)


def names_beside(stranger: Stranger, faults: tuple[ClientFault, ...]) -> FaultNames | None:
    """The names of faults beside the differences of a stranger."""
    return names_of(faults, stranger.differences)


def play_faulty(stranger: Stranger, faults: tuple[ClientFault, ...]) -> StrangerOutcome:
    """The outcome of a run on a stranger with these faults."""
    begun = time.process_time()
    report = asyncio.run(test_disguised(stranger, faults))
    outcome = outcome_of(stranger, report, time.process_time() - begun)
    outcome = replace(outcome, forms_no_group=bool(faults) and not forms_groups(stranger, faults))
    if faults and report.ended is not None and report.ended.kind is EndKind.NOT_STARTED:
        # Its faults keep it from joining, the kit says so, and there is nothing to find.
        return replace(outcome, ended="", undecided={}, closed=frozenset(CLIENT_CATALOGUE))
    return outcome


def forms_groups(stranger: Stranger, faults: Sequence[ClientFault]) -> bool:
    """Whether a client with these faults uses an assignment in the first scenario, in which it is alone: it sends a
    request that follows from one."""
    with Patch() as patch:
        put_in_differences(CLIENT_DIFFERENCES, stranger.differences, patch)
        for fault in faults:
            put_in_fault(fault, patch)
        try:
            events = course_of(base_settings(faults), SCENARIOS[0]).events
        except CpuLimitExceeded:
            return False
    return any(each.kind is Kind.REQUEST and each.api in USES for each in events)


async def test_disguised(stranger: Stranger, faults: Sequence[ClientFault]) -> Report:
    """The report of a run with the reference client as differences and faults make it."""
    plan = plan_for(stranger, BUNDLED)
    with Patch() as patch:
        put_in_differences(CLIENT_DIFFERENCES, stranger.differences, patch)
        for fault in faults:
            put_in_fault(fault, patch)
        subject = reference.make_subject(base_settings(faults))
        protocol = DRIVEN_CLIENTS if subject.is_driven else CLASSIC_CLIENTS
        player = ClientPlayer(subject, BUNDLED, protocol.judge, subject.start_cluster, 30.0, "virtual")
        player = replace(player, is_driven=subject.is_driven, run=run_virtual_in_thread)
        run = ClientRun(plan, (BUNDLED,), protocol, player, at_once=1, is_driven=subject.is_driven)
        return await run.run(drop_event)


def shows_on(stranger: Stranger, faults: Sequence[ClientFault], id: str) -> bool:
    """Whether one of some faults changes anything that scenarios see of a stranger that has the others."""
    settings, others = base_settings(faults), [each for each in faults if each.id != id]
    before = courses_of(settings, stranger.differences, others)
    after = courses_of(settings, stranger.differences, faults)
    try:
        return differ_in_events(before, after)
    except CpuLimitExceeded:
        return True  # it hangs


STRANGE_CLIENTS = StrangerKind(
    CLIENT_DIFFERENCES, client_pools, goes_with, play_stranger, lambda: CLIENT_CATALOGUE, Side.MEMBER
)
"""Strange members of classic groups."""
