"""A program that speaks the line protocol: a job for each connection, whose operators a kit drives step by step."""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.region.operator import (
    START_POSITIONS,
    CommitFailed,
    JobControl,
    Message,
    Offsets,
    OperatorPart,
    Partition,
    Polling,
    PositionLost,
    RegionOperator,
    WrongRegion,
)

# A job whose operators a kit drives step by step: what each request of the line protocol does to them.
#
# The kit is Kafka, the region's controller and the operators downstream: it calls back, returns records, opens
# permits, keeps the parts of checkpoints. adapters/region/PROTOCOL.md has the requests and responses.


Body = Mapping[str, Any]
TOPIC = "t"
"""The kit names partitions by numbers alone."""


class BadRequest(Exception):
    """A request that says nothing sensible; the message is one clear line."""


@dataclass(eq=False, slots=True)
class ScriptedConsumer:
    """A `KafkaConsumer` that is told by the kit what Kafka says."""

    sought: Offsets | None = None
    """What was sought since the request began."""
    commit_error: str = ""
    is_in_group: bool = True

    def seek(self, offsets: Offsets) -> None:
        """As `KafkaConsumer.seek`."""
        self.sought = dict(offsets)

    def commit(self, offsets: Offsets) -> None:
        """As `KafkaConsumer.commit`."""
        if self.commit_error:
            raise CommitFailed(self.commit_error)

    def is_member(self) -> bool:
        """As `KafkaConsumer.is_member`."""
        return self.is_in_group


@dataclass(slots=True)
class ScriptedClock:
    """A clock that is read at the beginning and at the end of a drain; the kit says how long that `takes`."""

    now: float = 0.0
    takes: float = 0.0

    def __call__(self) -> float:
        told, self.now = self.now, self.now + self.takes
        return told


@dataclass(eq=False, slots=True)
class LineJob:
    """The job control plane and the operators that are up."""

    control: JobControl
    max_poll_records: int = 500
    operators: dict[str, RegionOperator] = field(default_factory=dict)
    consumers: dict[str, ScriptedConsumer] = field(default_factory=dict)
    starts: Offsets = field(default_factory=dict)
    """Where a partition without a control variable begins, as the last assignment said."""
    clock: ScriptedClock = field(default_factory=ScriptedClock)
    asking: set[str] = field(default_factory=set)
    """Operators that have requested a reset since the request began."""

    def handle(self, request: Body) -> Body:
        """The response to a request. Raises `BadRequest`."""
        name = text_field(request, "do")
        if name == "restart":
            self.control.restart()
            return {}
        if name == "retire":
            self.control.retire(number_field(request, "number"))
            return {}
        if name == "launch":
            return self.launch(text_field(request, "operator"), request)
        if name not in HANDLERS:
            raise BadRequest(f"there is no request {name!r}")
        operator = text_field(request, "operator")
        if operator not in self.operators:
            raise BadRequest(f"operator {operator!r} is not up")
        consumer = self.consumers[operator]
        consumer.sought = None
        self.asking.clear()
        told = HANDLERS[name](self, self.operators[operator], request)
        if operator not in self.operators:
            return told
        return {**self.view(self.operators[operator], consumer), **told}

    def view(self, operator: RegionOperator, consumer: ScriptedConsumer) -> Body:
        """What the kit sees of an operator after each request."""
        return {
            "state": operator.state.value,
            "polling": operator.polling.value,
            "offsets": to_numbers(operator.offsets),
            "queue": len(operator.queue),
            "buffer": len(operator.drained),
            "hand": place_of(operator.hand),
            "seeks": None if consumer.sought is None else to_numbers(consumer.sought),
            "asks": operator.name in self.asking,
        }

    # -- an operator's life ---------------------------------------------------------------------------------------

    def launch(self, name: str, request: Body) -> Body:
        """An operator's PE comes up; the first time it polls at once."""
        if name not in self.control.names:
            raise BadRequest(f"{name!r} is no operator of the job")
        if name in self.operators:
            raise BadRequest(f"operator {name!r} is up already")
        if request.get("control_port") or request.get("start_position", "Beginning") not in START_POSITIONS:
            return {"refused": True, "reason": "no control port and no specific offset is allowed in a region"}
        consumer = ScriptedConsumer()
        try:
            operator = RegionOperator(
                name,
                self.control,
                consumer,
                lambda: self.asking.add(name),
                region=number_field(request, "region"),
                max_poll_records=self.max_poll_records,
                polling=Polling.OFF if request.get("again") else Polling.FULL,
                start_of=lambda partition: self.starts.get(partition, 0),
                clock=self.clock,
            )
        except WrongRegion as error:
            return {"refused": True, "reason": str(error)}
        self.operators[name], self.consumers[name] = operator, consumer
        self.asking.clear()
        return {**self.view(operator, consumer), "refused": False}

    def crash(self, operator: RegionOperator, request: Body) -> Body:
        """Its PE dies with all that is in it."""
        self.control.disconnect(operator.name)
        del self.consumers[operator.name]
        del self.operators[operator.name]
        return {}

    # -- Kafka ----------------------------------------------------------------------------------------------------

    def revoke(self, operator: RegionOperator, request: Body) -> Body:
        """Everything is revoked."""
        operator.on_revoked()
        return {}

    def assign(self, operator: RegionOperator, request: Body) -> Body:
        """Have an operator take the partitions that it is assigned."""
        self.starts |= to_offsets(request, "starts")
        partitions = request.get("partitions")
        if not isinstance(partitions, list) or not all(type(one) is int for one in partitions):
            raise BadRequest("'partitions' is not a list of numbers")
        operator.on_assigned(frozenset((TOPIC, one) for one in partitions))
        return {"partitions": len(set(partitions)), "topics": int(bool(partitions))}

    def poll(self, operator: RegionOperator, request: Body) -> Body:
        """A poll returns these records; none if there is no room for what a poll may return. Where they are not those
        that were sought the PE goes down."""
        records = request.get("records")
        if not isinstance(records, list) or not all(is_place(one) for one in records):
            raise BadRequest("'records' is not a list of pairs of numbers")
        has_room = operator.has_room()
        try:
            operator.receive([Message((TOPIC, number), offset) for number, offset in records] if has_room else [])
        except PositionLost as lost:
            self.crash(operator, request)
            return {"fails": True, "reason": str(lost)}
        return {"pauses": not has_room}

    # -- the process thread ---------------------------------------------------------------------------------------

    def take(self, operator: RegionOperator, request: Body) -> Body:
        """The process thread takes a message, if it has a permit."""
        return {"taken": bool(request.get("permit")) and operator.take()}

    def submit(self, operator: RegionOperator, request: Body) -> Body:
        """The process thread submits the message that it has in hand, or drops it."""
        return {"tuple": place_of(operator.submit())}

    # -- the region -----------------------------------------------------------------------------------------------

    def drain(self, operator: RegionOperator, request: Body) -> Body:
        """Drain; where the commit fails the PE goes down."""
        self.consumers[operator.name].commit_error = str(request.get("error", ""))
        self.clock.takes = number_field(request, "takes") / 1_000 if "takes" in request else 0.0
        try:
            commit = to_numbers(operator.drain())
            drains = {"last": operator.drains.last, "longest": operator.drains.longest}
            return {"commit": commit, "fails": False, "drains": drains}
        except CommitFailed:
            self.crash(operator, request)
            return {"commit": to_numbers(operator.offsets), "fails": True}

    def checkpoint(self, operator: RegionOperator, request: Body) -> Body:
        """Write a part of a checkpoint, or refuse."""
        self.consumers[operator.name].is_in_group = bool(request.get("member"))
        part = operator.checkpoint()
        if part is None:
            return {"written": None, "names": None, "part": None}
        offsets, names = to_numbers(part.offsets), sorted(part.names)
        told = {"name": part.name, "names": names, "offsets": offsets, "base": to_numbers(part.base)}
        return {"written": offsets, "names": names, "part": told}

    def resume(self, operator: RegionOperator, request: Body) -> Body:
        """The checkpoint is complete."""
        operator.resume()
        return {}

    def reset(self, operator: RegionOperator, request: Body) -> Body:
        """Contribute to the merge of a checkpoint; the initial state, which is number 0, needs none."""
        number = number_field(request, "number")
        if number == 0:
            operator.reset_to({})
            return {"done": True}
        operator.contribute(number, part_from_json(request.get("part")))
        return {"done": False}

    def finish(self, operator: RegionOperator, request: Body) -> Body:
        """Seek the merged checkpoint if the merge is complete; without one the reset fails once it is `late`."""
        merged = self.control.merge_if_complete(number_field(request, "number"))
        if merged is not None:
            operator.reset_to(merged)
        return {"done": merged is not None, "fails": merged is None and bool(request.get("late"))}


HANDLERS: Mapping[str, Callable[[LineJob, RegionOperator, Body], Body]] = {
    "crash": LineJob.crash,
    "revoke": LineJob.revoke,
    "assign": LineJob.assign,
    "poll": LineJob.poll,
    "take": LineJob.take,
    "submit": LineJob.submit,
    "drain": LineJob.drain,
    "checkpoint": LineJob.checkpoint,
    "resume": LineJob.resume,
    "reset": LineJob.reset,
    "finish": LineJob.finish,
}
"""What is asked of an operator that is up."""


def new_job(request: Body) -> LineJob:
    """The job of an `open` request. Raises `BadRequest`."""
    names = request.get("operators")
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        raise BadRequest("'operators' is not a list of names")
    return LineJob(JobControl(frozenset(names)), number_field(request, "max_poll_records"))


# -- fields ------------------------------------------------------------------------------------------------------------


def text_field(request: Body, name: str) -> str:
    """A field with a text. Raises `BadRequest`."""
    value = request.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"{name!r} is not a text")
    return value


def number_field(request: Body, name: str) -> int:
    """A field with a number, not below 0. Raises `BadRequest`."""
    value = request.get(name)
    if type(value) is not int or value < 0:
        raise BadRequest(f"{name!r} is not a number")
    return value


def is_place(value: object) -> bool:
    """Whether a value is a pair of a partition and an offset."""
    return isinstance(value, list) and len(value) == 2 and all(type(one) is int and one >= 0 for one in value)


def place_of(message: Message | None) -> list[int] | None:
    """A message as the line protocol has it."""
    return None if message is None else [message.partition[1], message.offset]


def to_numbers(offsets: Offsets) -> dict[str, int]:
    """A map of offsets as the line protocol has it."""
    return {str(number): offset for (_, number), offset in sorted(offsets.items())}


def to_offsets(request: Body, name: str) -> Offsets:
    """A field with a map of offsets. Raises `BadRequest`."""
    found: dict[Partition, int] = {}
    value = request.get(name)
    if not isinstance(value, dict):
        raise BadRequest(f"{name!r} is not a map of offsets")
    for number, offset in value.items():
        if not number.isdecimal() or type(offset) is not int or offset < 0:
            raise BadRequest(f"{name!r} is not a map of offsets")
        found[TOPIC, int(number)] = offset
    return found


def part_from_json(value: object) -> OperatorPart:
    """The part that an operator wrote. Raises `BadRequest`."""
    if not isinstance(value, dict) or not isinstance(value.get("names"), list):
        raise BadRequest("'part' is not what a checkpoint returned")
    name, names = text_field(value, "name"), frozenset(str(one) for one in value["names"])
    return OperatorPart(name, names, to_offsets(value, "offsets"), to_offsets(value, "base"))


# The program that speaks the line protocol: a job for each connection, and a line of JSON for each message.


MAX_LINE = 1 << 20
"""Bytes; a longer line ends the connection."""


class LineProgram:
    """Serves connections, each with a job of its own, which ends with it."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.StreamWriter, asyncio.Task[Any] | None] = {}

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns the address. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_LINE)
        address = self._server.sockets[0].getsockname()
        return address[0], address[1]

    async def close(self) -> None:
        """Stop, with all connections."""
        if self._server is not None:
            self._server.close()
            served = dict(self._connections)
            for writer in served:
                writer.close()
            await asyncio.gather(*filter(None, served.values()), return_exceptions=True)
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[writer] = asyncio.current_task()
        job: LineJob | None = None
        with suppress(ConnectionError):
            while line := await read_line(reader):
                response, job = respond(line, job)
                writer.write(json.dumps(response).encode() + b"\n")
                await writer.drain()
            if line is None:
                writer.write(json.dumps({"error": f"the line is longer than {MAX_LINE} bytes"}).encode() + b"\n")
        del self._connections[writer]
        writer.close()


async def read_line(reader: asyncio.StreamReader) -> bytes | None:
    """The next line, b"" at the end, None if it is too long."""
    try:
        return await reader.readline()
    except ValueError:
        return None


def respond(line: bytes, job: LineJob | None) -> tuple[dict[str, Any], LineJob | None]:
    """The response to a line, and the job after it."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return {"error": "the line is not JSON"}, job
    if not isinstance(request, dict):
        return {"error": "the line is not a JSON object"}, job
    of = {"of": request.get("id")}
    try:
        if request.get("do") == "open":
            return of, new_job(request)
        if job is None:
            raise BadRequest("no job is open")
        return {**of, **job.handle(request)}, job
    except BadRequest as error:
        return {**of, "error": str(error)}, job
