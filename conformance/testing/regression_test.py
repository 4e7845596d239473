"""From a trace to a test that plays its schedule once more: `fencepost replay --as-test`.

The test asserts what the model allows, never what was seen: it passes as soon as the target is right.
"""

import keyword
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

from fencepost.adapters.in_process import BUNDLED, DEFAULT_TOPIC
from fencepost.adapters.target import DEFAULT_OPTIONS, Description, Exchange, SendOptions, TraceBuilder
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import Member
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.testing.group_schedule import PlayedSchedule, first_violation, send_request
from fencepost.model.errors import Error, FencepostError
from fencepost.model.wire.codec import complete_body
from fencepost.traces.events import Body, Event, Header, Kind
from fencepost.traces.judge.judge import judge
from fencepost.traces.replay_script import ReplayStep, build_script

# -- the request ------------------------------------------------------------------------------------------------------


class CapturingChannel:
    """A channel that keeps the last request instead of sending it."""

    def __init__(self) -> None:
        self.body: Body = {}

    def send(self, api: str, version: int, body: Body, options: SendOptions = DEFAULT_OPTIONS) -> Exchange:
        """Keep a request; its response never comes."""
        self.body = body
        silent = SimpleNamespace(add_done_callback=lambda callback: None)
        return Exchange(None, cast(Any, silent), lambda: None)

    async def close(self) -> None:
        """Nothing is open."""


# -- from a trace to a test -------------------------------------------------------------------------------------------


class UnwritableTestError(FencepostError):
    """A trace that no test can be written of; the message is one line."""


def write_regression_test(header: Header, events: Sequence[Event]) -> str:
    """A test module with the schedule of a trace. Raises `UnwritableTestError`."""
    verdict = judge(header, tuple(events))
    first = first_violation(verdict)
    requirement = first.requirement if first is not None else ""
    premature = {violation.sequence for violation in verdict.violations if "time" in violation.fields}
    checks = {first.sequence: checked_fields(events, first.sequence, requirement)} if first is not None else {}
    lines = list(TestWriter(header, events, premature, checks).steps())
    title = (
        f"{requirement}: {DEFAULT_SPECIFICATION.requirements[requirement].title}"
        if requirement in DEFAULT_SPECIFICATION.requirements
        else header.source
    )
    name = re.sub(r"\W+", "_", (requirement or header.source).lower()).strip("_")
    body = "".join(f"    {line}\n" for line in lines)
    return f'''"""{title.replace(chr(34), chr(39))}. Written by `fencepost replay --as-test`."""

from fencepost.testing import GroupSchedule


def test_{name}(fencepost_schedule: GroupSchedule) -> None:
    s = fencepost_schedule
{body}    s.check()
'''


@dataclass(frozen=True, slots=True)
class Code:
    """A value that is written as an expression."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(slots=True)
class KnownMember:
    """A member of the trace: the variable that stands for it, its state by the responses, and the ids that it got."""

    variable: str
    state: Member
    ids: list[str] = field(default_factory=list)


class TestWriter:
    """Writes the steps of one trace."""

    __test__ = False

    def __init__(
        self,
        header: Header,
        events: Sequence[Event],
        premature: Collection[int],
        checks: Mapping[int, tuple[str, ...]],
    ) -> None:
        self.events = events
        self.checks = checks
        self.premature = premature
        self.script = build_script(events, premature)
        if self.script.routes:
            raise UnwritableTestError("the trace sends requests to nodes of its choice; replay it instead")
        self.group = group_of(events)
        self.topic_id = topic_id_of(events)
        self.channel = CapturingChannel()
        description = Description(
            "trace", header.order, "virtual", BUNDLED.versions, header.settings, DEFAULT_TOPIC, topic_id=self.topic_id
        )
        self.context = ScenarioContext(description, self.channel, TraceBuilder(lambda: 0), self.group)
        self.members: dict[str, KnownMember] = {}
        self.answered = {event.of: place for place, event in enumerate(events) if event.kind is Kind.RESPONSE}
        self.places = {event.sequence: place for place, event in enumerate(events)}
        self.dropped = {event.of for event in events if event.kind is Kind.FAULT and event.api == "drop"}
        self.learned = 0

    def steps(self) -> Iterator[str]:
        """The lines of the steps."""
        clock, is_left_open = 0, False
        steps = [step for step in self.script.steps if step.event.kind is not Kind.INTERNAL]
        for number, step in enumerate(steps):
            event = step.event
            self.learn_until(self.places[event.sequence])
            if event.time > clock:
                yield f"s.wait({event.time - clock})"
            clock = max(clock, event.time)
            if event.kind is Kind.FAULT:
                yield from self.fault_lines(event)
                continue
            yield from self.declare_member(event)
            after = self.places[steps[number + 1].event.sequence] if number + 1 < len(steps) else len(self.events)
            place = self.answered.get(event.sequence)
            waits = place is not None and place < after and event.sequence not in self.premature
            yield self.request_line(step, parks=not waits)
            if waits and place is not None:
                clock = max(clock, self.events[place].time)
            is_left_open = is_left_open or (not waits and place is not None)
        if is_left_open:
            yield "s.wait_for_responses()"

    def learn_until(self, place: int) -> None:
        """Learn what the responses before a place in the trace say."""
        for event in self.events[self.learned : place]:
            known = self.members.get(event.member)
            if event.kind is Kind.RESPONSE and event.api == "JoinGroup" and known is not None:
                learn_from_response(known, event.body)
        self.learned = max(self.learned, place)

    def declare_member(self, event: Event) -> Iterator[str]:
        """The line that makes a member, before its first request."""
        if not event.member or event.member in self.members:
            return
        join = next(
            (
                each
                for each in self.events
                if each.kind is Kind.REQUEST and each.api == "JoinGroup" and each.member == event.member
            ),
            None,
        )
        usual = self.context.expiring_member(event.member)
        state = member_of(event.member, join.body, self.group, usual) if join is not None else usual
        variable = self.variable_for(event.member)
        self.members[event.member] = KnownMember(variable, state)
        yield f"{variable} = s.member({', '.join(member_arguments(state, usual, self.group))})"

    def variable_for(self, label: str) -> str:
        """A name for a member that is not taken."""
        name = re.sub(r"\W", "_", label.lower()) or "member"
        taken = {"s", *(known.variable for known in self.members.values())}
        if not name.isidentifier() or keyword.iskeyword(name):
            name = f"member_{name}"
        while name in taken:
            name += "_"
        return name

    def request_line(self, step: ReplayStep, *, parks: bool) -> str:
        """The line that sends a request."""
        event = step.event
        checked = self.checks.get(event.sequence)
        more = [f"checks={literal(checked)}"] if checked else []
        sent = self.send_line(event, event.api, event.body, ["parks=True"] if parks else [], more)
        return f"request_{event.sequence} = {sent}" if event.sequence in self.dropped else sent

    def send_line(self, event: Event, api: str, body: Body, before: Iterable[str], after: Iterable[str] = ()) -> str:
        """The call that sends a request with this body, with more arguments before the fields and after them."""
        sender = self.members[event.member].variable if event.member in self.members else "s"
        fields = self.changed_fields(api, event.version, event.member, body)
        return f"{sender}.send({', '.join([literal(api), *before, f'version={event.version}', *fields, *after])})"

    def fault_lines(self, event: Event) -> Iterator[str]:
        """The lines that do what the trace did to the target or to a connection."""
        match event.api:
            case "restart":
                yield f"s.restart({', '.join(f'{name}={value!r}' for name, value in event.body.items())})"
            case "drop":
                yield f"request_{event.of}.drop()"
            case "torn":
                yield from self.declare_member(event)
                api, share, request = (event.body[name] for name in ("api", "share", "request"))
                yield self.send_line(event, api, request, ["parks=True", f"share={share}"])

    def changed_fields(self, api: str, version: int, label: str, body: Body) -> Iterator[str]:
        """The fields of a request that its sender would not send by itself."""
        members = {name: replace(known.state) for name, known in self.members.items()}
        send_request(PlayedSchedule(self.context, members), api, label, {"version": version})
        usual = complete_body(f"{api}Request", version, self.channel.body)
        wanted = complete_body(f"{api}Request", version, body)
        for name, value in wanted.items():
            if usual.get(name) != value:
                yield f"{name}={literal(self.expression(value))}"

    def expression(self, value: Any) -> Any:
        """A value with expressions in place of the ids that a target issues."""
        if isinstance(value, Mapping):
            return {name: self.expression(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.expression(each) for each in value]
        if not isinstance(value, str) or not value:
            return value
        if value == self.group:
            return Code("s.group")
        if value == self.topic_id:
            return Code("s.topic_id")
        for known in self.members.values():
            if value == known.state.id:
                return Code(f"{known.variable}.id")
            if value in known.ids:
                return Code(f"{known.variable}.earlier_id({known.ids.index(value)})")
        return value


def literal(value: Any) -> str:
    """A value as source code, in double quotes."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(name)}: {literal(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, str | bytes) and (told := repr(value)).endswith("'") and '"' not in told:
        return f'{told[: told.index(chr(39))]}"{told[told.index(chr(39)) + 1 : -1]}"'
    return repr(value)


def group_of(events: Sequence[Event]) -> str:
    """The group that the first request about one names. Raises `UnwritableTestError` without one."""
    for event in events:
        if event.kind is Kind.REQUEST and event.body.get("group_id"):
            return str(event.body["group_id"])
        if event.kind is Kind.REQUEST and event.body.get("groups"):
            first = event.body["groups"][0]
            return str(first["group_id"] if isinstance(first, Mapping) else first)
    raise UnwritableTestError("the trace has no request about a group, so there is nothing to play")


def checked_fields(events: Sequence[Event], sequence: int, requirement: str) -> tuple[str, ...]:
    """The requirement and the fields of the check of a response; nothing if the trace has no such check."""
    for event in events:
        is_check = event.kind is Kind.INTERNAL and event.api == "check" and event.of == sequence
        if is_check and event.body["requirement"] == requirement:
            return (requirement, *event.body["fields"])
    return ()


def topic_id_of(events: Sequence[Event]) -> str | None:
    """The id of the kit's topic in the trace; None without one."""
    for event in events:
        if event.kind is Kind.INTERNAL and event.api == "topics":
            return next(iter(event.body.get("ids", {}).values()), None)
    return None


def member_of(label: str, join: Body, group: str, usual: Member) -> Member:
    """A member as its first JoinGroup request describes it."""
    instance = join.get("group_instance_id")
    protocols = tuple((row["name"], bytes(row.get("metadata", b""))) for row in join.get("protocols", ()))
    return replace(
        usual,
        label=label,
        protocols=protocols or usual.protocols,
        session_timeout=join.get("session_timeout_ms", usual.session_timeout),
        rebalance_timeout=join.get("rebalance_timeout_ms", usual.rebalance_timeout),
        instance=instance if instance is not None and instance.endswith(f"-{group}") else None,
    )


def member_arguments(state: Member, usual: Member, group: str) -> Iterator[str]:
    """The arguments that make such a member."""
    yield literal(state.label)
    if state.protocols != usual.protocols:
        yield from map(literal, state.protocols)
    if state.session_timeout != usual.session_timeout:
        yield f"session_timeout={state.session_timeout}"
    if state.rebalance_timeout != usual.rebalance_timeout or state.session_timeout != usual.session_timeout:
        yield f"rebalance_timeout={state.rebalance_timeout}"
    if state.instance is not None:
        yield f"instance={literal(state.instance.removesuffix(f'-{group}'))}"


def learn_from_response(known: KnownMember, body: Body) -> None:
    """Update a member by the response to its JoinGroup, as a schedule does when it is played."""
    if body.get("error_code") == Error.MEMBER_ID_REQUIRED:
        known.state = replace(known.state, id=body.get("member_id") or "")
    elif body.get("error_code") == 0:
        known.state = replace(
            known.state,
            id=body.get("member_id") or known.state.id,
            generation=body.get("generation_id", -1),
            protocol=body.get("protocol_name"),
            leader=body.get("leader"),
            members=tuple(body.get("members") or ()),
        )
    if known.state.id and known.state.id not in known.ids:
        known.ids.append(known.state.id)
