"""The names that a fault of a coordinator may have, measured without asking the judge for one.

Every scenario is played twice, with the fault and without it, and the traces are laid side by side. The fault shows
first in the request whose response differs first. What the shipped coordinator's response to it is there for is known:
the model has a rule for that response, the rule has requirements, and the scenario may check a requirement with it.
These are the fault's own names; where only a field is wrong that some of them speak of, it is those. A requirement that
a scenario checks later with a response that differs too is broken as a consequence. What is sure is that the response
differs from a correct one; that a requirement is broken by what differs is only as sure as the rules are precise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import takewhile
from types import MappingProxyType
from typing import Any

from fencepost.adapters.virtual_clock import run_virtual
from fencepost.conformance.classic.zoo.bugs.environments import PLAIN, Environment
from fencepost.conformance.classic.zoo.comparison import made_scenarios
from fencepost.conformance.classic.zoo.coordinator_stand import CoordinatorFault, scenarios_for, skip_judging
from fencepost.conformance.classic.zoo.strangers import change_ids
from fencepost.conformance.run.bundled import BUNDLED_SETTINGS
from fencepost.conformance.run.play import NewTarget
from fencepost.conformance.subject import Scenario, required_capabilities
from fencepost.conformance.zoo.fault import Patch
from fencepost.conformance.zoo.measuring import CpuLimitExceeded, cpu_limit
from fencepost.conformance.zoo.strangers import FaultNames
from fencepost.conformance.zoo.strategies import SCENARIOS
from fencepost.model.catalogue.specification import Rule
from fencepost.model.classic.catalogue import CLASSIC
from fencepost.traces.classic.attribution import WIRE_NAMES
from fencepost.traces.events import Body, Event, Header, Kind, Order
from fencepost.traces.judge.diagnosis.diagnosis import errors_in
from fencepost.traces.judge.judge import judge

MAX_SECONDS = 2.0
"""The seconds of one core that a scenario is played for."""
SHIPPED_TRACES = 4_096
"""The most traces that are kept: all of the environments of the zoo, and those beside the differences of a stranger."""


@dataclass(frozen=True, slots=True)
class Answer:
    """When a request got its response, how long that took, and the body; -1, 0 and None if it got none."""

    time: int
    body: Body | None
    wait: int = 0


@cache
def names_of(faults: tuple[CoordinatorFault, ...], here: Environment | None = None) -> FaultNames | None:
    """The names of some faults together, in the environment that they need or in another one, `here`; None if they show
    in no scenario, or nothing can be played as they hang or break whatever they are asked."""
    environment = here or next((each.setting for each in faults if each.setting is not PLAIN), PLAIN)
    shipped = [shipped_trace(environment, scenario) for scenario in compared_scenarios()]
    with Patch() as patch:
        if here is not None:
            here.install(patch)
        for fault in faults:
            fault.apply(patch)
        try:
            faulty = [trace_of(environment, scenario) for scenario in compared_scenarios()]
        except CpuLimitExceeded:
            return None
    if not any(events for _, events in faulty):
        return None
    told = FaultNames(frozenset(id for fault in faults for id in (*fault.breaks, *names_by_field(fault))))
    if not told.own and faulty == shipped:
        return None
    own: set[str] = set()
    later: set[str] = set()
    for scenario, (_, before), (_, after) in zip(compared_scenarios(), shipped, faulty, strict=True):
        for request in first_difference(before, after):
            rules = rules_of_response(environment, scenario, request)
            own |= set(names_of_difference(rules, before, after, request))
        later |= set(broken_checks(before, after))
    return told | FaultNames(frozenset(own), frozenset(later - own))


def names_by_field(fault: CoordinatorFault) -> Iterator[str]:
    """The requirements that speak of the field that a rewrite changes, in its API or for all of them."""
    api, _, path = fault.id.partition(" ")
    field = path.partition(" ")[0].rpartition(".")[2]
    rules = [rule for rule in CLASSIC.rules.values() if rule.api == api]
    families = {id.partition("-")[0] for rule in rules for id in rule.requirements} | {"GEN"}
    word = field.partition("_")[0]
    if api == "FindCoordinator":  # whoever is sent elsewhere is told so by every lookup
        yield from (id for id in CLASSIC.requirements if id.startswith("FIND-"))
    elif path.endswith((" emptied", " shifted")):
        yield from (rule.fields[field] for rule in rules if field in rule.fields)
        for id, requirement in CLASSIC.requirements.items():
            if id.partition("-")[0] in families and word in requirement.sentence:
                yield id


@cache
def compared_scenarios() -> tuple[Scenario, ...]:
    """The scenarios that are played."""
    return (*scenarios_for(SCENARIOS), *made_scenarios())


@lru_cache(SHIPPED_TRACES)
def shipped_trace(environment: Environment, scenario: Scenario) -> tuple[Header, tuple[Event, ...]]:
    """The trace of the shipped coordinator."""
    with environment.activate():
        return trace_of(environment, scenario)


def trace_of(environment: Environment, scenario: Scenario) -> tuple[Header, tuple[Event, ...]]:
    """The trace of the coordinator that is active in this process, not judged; empty if it cannot be played. Raises
    `CpuLimitExceeded` if the coordinator hangs."""
    settings = environment.settings or BUNDLED_SETTINGS
    if "no-initial-delay" in required_capabilities(scenario):
        settings = replace(settings, initial_rebalance_delay=0)
    player = NewTarget(partial(environment.make_target, settings), environment.grace)
    try:
        with Patch() as patch, cpu_limit(MAX_SECONDS):
            # What a member id looks like is up to a coordinator: here it tells nothing of the request.
            change_ids(patch, lambda shipped: lambda prefix: shipped("member"))
            run = run_virtual(player.play(scenario, scenario.name, skip_judging))
    except Exception:  # a mutant may raise anything
        return Header("", Order.TOTAL, "virtual", settings, 0), ()
    return run.header, run.events


def answers_in(events: Sequence[Event]) -> Mapping[int, Answer]:
    """What each request was answered, by its number."""
    sent = {event.sequence: event.time for event in events if event.kind is Kind.REQUEST}
    found = dict.fromkeys(sent, Answer(-1, None))
    for event in events:
        if event.kind is Kind.RESPONSE and event.of is not None:
            found[event.of] = Answer(event.time, event.body, event.time - sent[event.of])
    return found


def first_difference(shipped: Sequence[Event], faulty: Sequence[Event]) -> list[int]:
    """The requests whose responses differ first, among those that both traces have before they part; none if the traces
    are equal."""
    common = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(shipped, faulty, strict=False))))
    known, seen = answers_in(shipped), answers_in(faulty)
    requests = [event.sequence for event in shipped[:common] if event.kind is Kind.REQUEST]
    parted = {
        request: time_of(known[request], seen[request]) for request in requests if known[request] != seen[request]
    }
    return [request for request, time in parted.items() if time == min(parted.values())]


def time_of(one: Answer, other: Answer) -> int:
    """When two answers to a request begin to differ."""
    return min(each.time for each in (one, other) if each.body is not None)


def names_of_difference(
    rules: Sequence[Rule], shipped: Sequence[Event], faulty: Sequence[Event], request: int
) -> Iterator[str]:
    """The requirements that the shipped response to a request is there for; of one that differs in some fields alone,
    those that speak of these, if there are any."""
    known, seen = answers_in(shipped)[request], answers_in(faulty)[request]
    fields = fields_that_differ(known, seen)
    checks = [event for event in shipped if is_check(event) and event.of == request]
    of_fields = [rule.fields[field] for rule in rules for field in fields if field in rule.fields]
    of_fields += [check.body["requirement"] for check in checks if fields and is_about(check, known, seen)]
    everything = [check.body["requirement"] for check in checks] + [id for rule in rules for id in rule.requirements]
    yield from of_fields or everything


WORDS: Mapping[str, str] = MappingProxyType(
    {wire: word for word, wire in WIRE_NAMES.items() if word != "error"}
    | {"protocol_data": "protocol", "topics": "partitions"}
)
"""What the rules of the model call fields of responses that have another name on the wire."""


def fields_that_differ(one: Answer, other: Answer) -> frozenset[str]:
    """The fields in which two responses differ, as rules call them; none if they differ in an error or in time."""
    if one.body is None or other.body is None or one.time != other.time:
        return frozenset()
    found = {WORDS.get(name, name) for name in names_that_differ(one.body, other.body)}
    if len(one.body.get("groups", ())) == len(other.body.get("groups", ())):
        found.discard("groups")  # what rules call so is the number of rows
    return frozenset() if "error_code" in found else frozenset(found)


def names_that_differ(one: Any, other: Any) -> Iterator[str]:
    """The names of the fields on the way to every difference between two values."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in one.keys() | other.keys():
            if one.get(name) != other.get(name):
                yield name
                yield from names_that_differ(one.get(name), other.get(name))
    elif isinstance(one, list) and isinstance(other, list):
        for left, right in zip(one, other, strict=False):
            yield from names_that_differ(left, right)


@cache
def rules_of_response(environment: Environment, scenario: Scenario, request: int) -> tuple[Rule, ...]:
    """The rules by which the model explains the shipped response to a request of a scenario, or that there is none."""
    header, events = shipped_trace(environment, scenario)
    answered = (event.sequence for event in events if event.kind is Kind.RESPONSE and event.of == request)
    ends = next(answered, request) + 1
    before, after = (judge(header, events[:end]).rules for end in (request, ends))
    added = (CLASSIC.rules[name] for name, count in after.items() if count > before.get(name, 0))
    return tuple(rule for rule in added if rule.api == events[request].api)


def is_check(event: Event) -> bool:
    """Whether an event says that a response is checked for a requirement."""
    return event.kind is Kind.INTERNAL and event.api == "check"


def broken_checks(shipped: Sequence[Event], faulty: Sequence[Event]) -> Iterator[str]:
    """The requirements that are checked with responses that differ in what they speak of."""
    known, seen = answers_in(shipped), answers_in(faulty)
    left = [event for event in faulty if is_check(event)]
    for check in filter(is_check, shipped):
        name = check.body["requirement"]
        same = next((each for each in left if each.body["requirement"] == name), None)
        if same is not None:
            left.remove(same)
            if is_about(check, known[check.of or 0], seen[same.of or 0]):
                yield name


def is_about(check: Event, one: Answer, other: Answer) -> bool:
    """Whether what a response is checked for is among what differs in it: an error, its absence, a field, the time that
    a requirement about timers looks at."""
    if one.body is None or other.body is None:
        return one.body != other.body
    if check.body["requirement"].startswith("TIMER-") and one.wait != other.wait:
        return True
    names = frozenset(names_that_differ(one.body, other.body))
    words = {WORDS.get(name, name) for name in names}
    sentence = CLASSIC.requirements[check.body["requirement"]].sentence
    told = words & set(check.body["fields"]) or any(name.partition("_")[0] in sentence for name in names)
    return "error_code" in names or errors_in(one.body) != errors_in(other.body) or bool(told)
