"""A job under test: requests of the line protocol, and longer steps that are made of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.adapters.target import SendOptions
from fencepost.conformance.run.context import ScenarioContext
from fencepost.conformance.run.requests import RESPONSE_TIMEOUT_MS, Call
from fencepost.traces.events import Body

MAX_POLL_RECORDS = 500
EVERYBODY = "job"
"""Who a request is for that is about no operator."""


class Job:
    """A job that is open. It keeps what operators wrote into checkpoints, as a region does."""

    def __init__(self, context: ScenarioContext, names: Iterable[str]) -> None:
        self.context = context
        self.names = tuple(names)
        self.parts: dict[tuple[str, int], Any] = {}
        """By operator and number."""

    def send(self, api: str, operator: str = "", **fields: object) -> Call:
        """Send a request, about an operator if one is named."""
        body: dict[str, object] = {"operator": operator, **fields} if operator else dict(fields)
        exchange = self.context.channel.send(api, 0, body, SendOptions(operator or EVERYBODY))
        return Call(api, 0, exchange, RESPONSE_TIMEOUT_MS)

    async def ask(self, api: str, operator: str = "", **fields: object) -> Body:
        """Send a request and await its response."""
        return await self.send(api, operator, **fields)

    async def check(self, requirements: str | tuple[str, ...], api: str, operator: str = "", **fields: object) -> Body:
        """Send a request whose response is evidence of the requirements."""
        call = self.send(api, operator, **fields)
        await self.context.check(requirements, call)
        return call.body

    async def repeat(self, api: str, body: Mapping[str, Any]) -> None:
        """Send a request as in a trace, but with what an operator wrote into its checkpoint in this job."""
        fields = {name: value for name, value in body.items() if name != "operator"}
        operator = str(body.get("operator", ""))
        match api:
            case "checkpoint":
                await self.write(operator, fields["number"], fields["member"])
            case "reset" if fields["number"]:
                await self.contribute(operator, fields["number"])
            case _:
                await self.ask(api, operator, **fields)

    # -- Kafka ----------------------------------------------------------------------------------------------------

    async def assign(
        self,
        operator: str,
        *partitions: int,
        starts: Mapping[int, int] | None = None,
        check: str | tuple[str, ...] = (),
    ) -> Body:
        """Assign these partitions; those that nobody has read begin at `starts`, or at 0."""
        begins = {str(one): (starts or {}).get(one, 0) for one in partitions}
        return await self.check(check, "assign", operator, partitions=list(partitions), starts=begins)

    async def poll(self, operator: str, *records: tuple[int, int], check: str | tuple[str, ...] = ()) -> Body:
        """A poll returns these records: pairs of partition and offset."""
        return await self.check(check, "poll", operator, records=[list(one) for one in records])

    async def pass_on(self, operator: str, count: int = 1, check: str | tuple[str, ...] = ()) -> Body:
        """Take and submit `count` messages; the response to the last submission."""
        response: Body = {}
        for _ in range(count):
            await self.ask("take", operator, permit=True)
            response = await self.check(check, "submit", operator, permit=True)
        return response

    # -- the region -----------------------------------------------------------------------------------------------

    async def write(self, operator: str, number: int, member: bool = True, check: str | tuple[str, ...] = ()) -> Body:
        """Have an operator write a checkpoint, and keep its part."""
        response = await self.check(check, "checkpoint", operator, number=number, member=member)
        self.parts[operator, number] = response.get("part")
        return response

    async def complete_checkpoint(self, number: int, *operators: str) -> None:
        """Drain all, have all write, and go on."""
        names = operators or self.names
        for name in names:
            await self.ask("drain", name, error="")
        for name in names:
            await self.write(name, number)
        if number > 1:
            await self.ask("retire", number=number - 1)
        for name in names:
            await self.ask("resume", name)

    async def contribute(self, operator: str, number: int, check: str | tuple[str, ...] = ()) -> Body:
        """Begin a reset of an operator to a checkpoint."""
        part = self.parts.get((operator, number))
        return await self.check(check, "reset", operator, number=number, part=part)

    async def reset(self, number: int, check: str | tuple[str, ...] = ()) -> None:
        """Reset all operators, which are up, to a checkpoint, or with 0 to the initial state."""
        if number == 0:
            for name in self.names:
                await self.check(check, "reset", name, number=0)
            return
        for name in self.names:
            await self.contribute(name, number)
        for name in self.names:
            await self.check(check, "finish", name, number=number)


async def open_job(context: ScenarioContext, names: str = "AB", max_poll_records: int = MAX_POLL_RECORDS) -> Job:
    """A job of which no operator is up."""
    job = Job(context, names)
    await job.ask("open", operators=list(names), max_poll_records=max_poll_records)
    return job


async def start_job(context: ScenarioContext, names: str = "AB", max_poll_records: int = MAX_POLL_RECORDS) -> Job:
    """A job whose operators are up."""
    job = await open_job(context, names, max_poll_records)
    for name in names:
        await job.ask("launch", name, region=0)
    return job


async def run_job(context: ScenarioContext) -> Job:
    """A job in which A has partition 0 and B partition 1; each has submitted one record of it."""
    job = await start_job(context)
    for partition, name in enumerate(job.names):
        await job.assign(name, partition)
        await job.poll(name, (partition, 0))
        await job.pass_on(name)
    return job
