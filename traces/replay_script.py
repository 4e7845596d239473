"""Replay scripts: the schedule of a trace, with the responses that each request waited for and the gaps of time.

Ids issued by a target differ from run to run. An `IdTranslation` maps those in the trace to those of the replay, in
every request.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from fencepost.model.wire.codec import decode_body, encode_body
from fencepost.traces.events import SAVED, Body, Event, Kind

T = TypeVar("T", int, str)
REPLAYED_FAULTS = frozenset({"drop", "move", "restart", "torn"})
"""Faults that the schedule caused; all others were the target's."""
ID_ISSUING_ERRORS = frozenset({0, 79})
"""Error codes of JoinGroup responses that issue a member id: none, and MEMBER_ID_REQUIRED."""
GROUP_KEY, TRANSACTION_KEY = 0, 1
"""Key types of FindCoordinator."""


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """One step: send a request or a part of one, drop one, restart the target, move a group, write an internal event.

    `after` are the requests whose responses came since the step before; `gap` is the time in milliseconds from the last
    of these responses, or else from the step before.
    """

    event: Event
    after: tuple[int, ...]
    gap: int


@dataclass(frozen=True, slots=True)
class ReplayScript:
    """The schedule of a trace. Requests are identified by their sequence number in the trace.

    `annotations` are internal events about a request, written again at the end; `responses` are those in the trace;
    `routes` are the nodes of requests whose node the schedule chose.
    """

    steps: tuple[ReplayStep, ...]
    annotations: tuple[Event, ...]
    responses: Mapping[int, Event]
    routes: Mapping[int, int]


def build_script(
    events: Iterable[Event],
    premature: Collection[int] = (),
    complete_request: Callable[[Event], Event] | None = None,
) -> ReplayScript:
    """The script of a trace. No step waits for the responses to requests in `premature`: they should not have come.

    `complete_request` makes each request whole, by default as `with_defaults` does, and raises ValueError for one that
    cannot be sent.
    """
    complete = complete_request or with_defaults
    steps: list[ReplayStep] = []
    remarks: list[Event] = []
    responses: dict[int, Event] = {}
    routes: dict[int, int] = {}
    dropped: set[int] = set()
    came: list[int] = []
    last: int | None = None
    for event in events:
        if event.kind is Kind.RESPONSE and event.of is not None:
            if event.of in dropped:
                continue
            responses[event.of] = event
            if event.of in premature:
                continue
            came.append(event.of)
        elif event.kind is Kind.INTERNAL and event.of is not None:
            if event.api == "routed":
                routes[event.of] = event.body["broker"]
            else:
                remarks.append(event)
            continue
        elif is_replayed(event):
            if event.kind is Kind.FAULT and event.of is not None:
                dropped.add(event.of)
            whole = complete(event) if event.kind is Kind.REQUEST else event
            steps.append(ReplayStep(whole, tuple(came), event.time - (event.time if last is None else last)))
            came = []
        else:
            continue
        last = event.time
    return ReplayScript(tuple(steps), tuple(remarks), responses, routes)


def is_replayed(event: Event) -> bool:
    """Whether the schedule caused the event, and not the target."""
    if event.kind is Kind.FAULT:
        return event.api in REPLAYED_FAULTS
    return event.kind is Kind.REQUEST or (event.kind is Kind.INTERNAL and event.api != SAVED)


def with_defaults(event: Event) -> Event:
    """A request with all fields of its version; absent fields get their defaults.

    Raises `ValueError` for a request that does not fit the wire format.
    """
    name = event.api + "Request"
    try:
        whole = decode_body(name, event.version, encode_body(name, event.version, event.body))
    except ValueError as error:
        raise ValueError(f"request {event.sequence} cannot be sent: {error}") from None
    if whole.findings:
        raise ValueError(f"request {event.sequence} cannot be sent: {whole.findings[0]}")
    return replace(event, body=whole.body)


@dataclass(slots=True)
class Translation:
    """Maps what differs between a trace and its replay: nothing, as long as a protocol does not override methods.

    `new_name` renames groups, and whatever else a target keeps from one replay to the next.
    """

    new_name: Callable[[str], str]

    def translate_request(self, body: Body) -> Body:
        """The body of a request with the ids of the replay."""
        return body

    def translate_annotation(self, body: Body) -> Body:
        """The body of an annotation with the ids of the replay."""
        return body

    def translate_node(self, then: int, brokers: Collection[int]) -> int | None:
        """The broker in `brokers` that stands for a node of the trace; None if there is none."""
        return then if then in brokers else None

    def learn_topic_id(self, annotations: Iterable[Event], topic: str, topic_id: str) -> None:
        """Learn the id that the target has for `topic`."""

    def learn_response(self, request: Event, then: Body, now: Body) -> None:
        """Learn the ids in two responses to the same request: `then` in the trace, `now` in the replay."""


@dataclass(slots=True)
class IdTranslation(Translation):
    """Maps names and ids in a trace of classic groups to those of its replay."""

    members: dict[str, str] = field(default_factory=dict)
    generations: dict[tuple[str, str | None], dict[int, int]] = field(default_factory=dict)
    """By group and member id; the member id None stands for the whole group."""
    producers: dict[int, int] = field(default_factory=dict)
    epochs: dict[int, dict[int, int]] = field(default_factory=dict)
    nodes: dict[int, int] = field(default_factory=dict)
    topics: dict[str, str] = field(default_factory=dict)
    """Topic ids."""

    # --- requests -----------------------------------------------------------------------------------------------

    def translate_request(self, body: Body) -> dict[str, Any]:
        """The body of a request with the ids of the replay."""
        return {name: self.translate_value(name, value, body) for name, value in body.items()}

    def translate_value(self, name: str, value: Any, body: Body) -> Any:
        """The field `name` of `body` with the ids of the replay."""
        if isinstance(value, list | tuple):
            return [self.translate_value(ITEM_FIELDS.get(name, ""), each, body) for each in value]
        if isinstance(value, Mapping):
            return self.translate_request(value)
        if name == "topic_id":
            return self.topics.get(value, value)
        if name == "member_id":
            return self.members.get(value, value)
        if name in ("generation_id", "generation_id_or_member_epoch"):
            return self.translate_generation(body.get("group_id", ""), body.get("member_id"), value)
        if name.endswith("producer_id"):
            return self.producers.get(value, value)
        if name.endswith("producer_epoch"):
            told = self.epochs.get(body.get(name.removesuffix("epoch") + "id", -1), {})
            return translate_counter(value, told)
        if name == "key":
            return (
                self.translate_name(value) if body.get("key_type", GROUP_KEY) in (GROUP_KEY, TRANSACTION_KEY) else value
            )
        return self.translate_name(value) if name == "group_id" or name.endswith("transactional_id") else value

    def translate_name(self, name: str | None) -> str | None:
        """The name of a group or a transaction in the replay; None and "" are unchanged."""
        return self.new_name(name) if name else name

    def translate_generation(self, group: str, member: str | None, value: int) -> int:
        """The generation in the replay, by the responses to `member`, else by those to any member of `group`."""
        told = self.generations.get((group, member)) or self.generations.get((group, None)) or {}
        return translate_counter(value, told)

    def translate_node(self, then: int, brokers: Collection[int]) -> int | None:
        """The broker in `brokers` that stands for a node of the trace; a node that no lookup named may be any
        unassigned one. None if there is none left."""
        if then in self.nodes:
            return self.nodes[then]
        others = [broker for broker in brokers if broker not in self.nodes.values()]
        return then if then in others else next(iter(others), None)

    # --- topics -------------------------------------------------------------------------------------------------

    def learn_topic_id(self, annotations: Iterable[Event], topic: str, topic_id: str) -> None:
        """Map the ids of `topic` in the annotations to `topic_id`."""
        then = (remark.body.get("ids", {}) for remark in annotations if remark.api == "topics")
        self.topics |= {ids[topic]: topic_id for ids in then if topic in ids}

    def translate_annotation(self, body: Body) -> Body:
        """The body of an annotation with the topic ids of the replay."""
        if "ids" not in body:
            return body
        return {**body, "ids": {name: self.topics.get(each, each) for name, each in body["ids"].items()}}

    # --- answers ------------------------------------------------------------------------------------------------

    def learn_response(self, request: Event, then: Body, now: Body) -> None:
        """Learn the ids in two responses to the same request: `then` in the trace, `now` in the replay."""
        if (
            request.api == "JoinGroup"
            and then.get("error_code") in ID_ISSUING_ERRORS
            and now.get("error_code") in ID_ISSUING_ERRORS
        ):
            self.learn_member(request, then, now)
        elif request.api == "InitProducerId" and then.get("error_code") == 0 == now.get("error_code"):
            for producer, today in value_pairs("producer_id", int, then, now):
                self.producers[producer] = today
                self.epochs.setdefault(producer, {}).update(value_pairs("producer_epoch", int, then, now))

        elif request.api == "FindCoordinator":
            for before, after in zip(lookup_entries(then), lookup_entries(now), strict=False):
                if before.get("error_code") == 0 == after.get("error_code"):
                    self.nodes.update(value_pairs("node_id", int, before, after))

    def learn_member(self, request: Event, then: Body, now: Body) -> None:
        """Learn member ids and generations from two JoinGroup responses that issue a member id."""
        self.members.update(value_pairs("member_id", str, then, now))
        if then.get("error_code") == 0 == now.get("error_code"):
            group = request.body.get("group_id", "")
            for member in (then.get("member_id"), None):
                self.generations.setdefault((group, member), {}).update(value_pairs("generation_id", int, then, now))
            self.learn_listed_members(then.get("members") or (), now.get("members") or ())

    def learn_listed_members(self, then: Iterable[Body], now: Iterable[Body]) -> None:
        """Learn member ids from the leader's lists of members, whose own responses may still be on their way."""
        known = set(self.members.values())
        # A faulty target may list a member twice.
        left = list({row.get("member_id"): row for row in now if row.get("member_id") not in known}.values())
        for row in then:
            twin = next((each for each in left if identifying_fields(each) == identifying_fields(row)), None)
            if twin is not None and row.get("member_id") not in self.members:
                left.remove(twin)
                self.members.update(value_pairs("member_id", str, row, twin))


ITEM_FIELDS: Mapping[str, str] = {"groups": "group_id", "groups_names": "group_id", "coordinator_keys": "key"}
"""The field name that an item of a list of names stands for."""


def lookup_entries(response: Body) -> Sequence[Body]:
    """The entries of a FindCoordinator response; before version 4, the response itself."""
    return response.get("coordinators") or (response,)


def value_pairs(name: str, kind: type[T], then: Body, now: Body) -> Iterator[tuple[T, T]]:
    """Yield the values of the field `name` in both bodies, if both are of type `kind` and not empty."""
    before, after = then.get(name), now.get(name)
    if isinstance(before, kind) and isinstance(after, kind) and before != "" != after:
        yield before, after


def identifying_fields(row: Body) -> tuple[object, object]:
    """The fields that distinguish members besides their ids."""
    return row.get("group_instance_id"), row.get("metadata")


def translate_counter(value: int, known: Mapping[int, int]) -> int:
    """The counter in the replay: the distance from the nearest known counter at or below `value` is kept.

    Negative values, which mean none, are unchanged.
    """
    if value < 0 or not known:
        return value
    nearest = max((each for each in known if each <= value), default=min(known))
    return max(known[nearest] + value - nearest, 0)
