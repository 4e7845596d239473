"""Drain, checkpoint, merge."""

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.region.job import run_job, start_job

checkpoints = ScenarioFamily()


@checkpoints.add("REGION-23", "REGION-24", "REGION-25", smoke=True)
async def drain_and_resume(context: ScenarioContext) -> None:
    """A drain stops polling, puts the queue aside and commits all in one request; then the queue comes back."""
    job = await start_job(context)
    await job.assign("A", 0, 1)
    await job.poll("A", (0, 0), (1, 0), (0, 1))
    await job.pass_on("A", 2)
    await job.check(("REGION-23", "REGION-24", "REGION-25"), "drain", "A", error="")
    await job.write("A", 1)
    await job.check("REGION-24", "resume", "A")
    await job.pass_on("A", check="REGION-24")


@checkpoints.add("REGION-27")
async def times_of_drains(context: ScenarioContext) -> None:
    """The times of the last drain and of the longest one are those of the drains."""
    job = await run_job(context)
    for number, takes in enumerate((5, 9, 3), 1):
        await job.check("REGION-27", "drain", "A", error="", takes=takes)
        await job.write("A", number)
        await job.ask("resume", "A")


@checkpoints.add("REGION-26")
async def failed_commit(context: ScenarioContext) -> None:
    """A commit that fails restarts the operator."""
    job = await run_job(context)
    await job.check("REGION-26", "drain", "A", error="ILLEGAL_GENERATION")
    await job.ask("launch", "A", region=0, again=True)
    await job.reset(0, check="REGION-26")


@checkpoints.add("REGION-28", "REGION-29", smoke=True)
async def contents_of_a_checkpoint(context: ScenarioContext) -> None:
    """A checkpoint names all operators of the job, also where one has yet to register, and the operator's offsets."""
    job = await run_job(context)
    for name in job.names:
        await job.ask("drain", name, error="")
    for name in job.names:
        await job.write(name, 1, check=("REGION-28", "REGION-29"))


@checkpoints.add("REGION-30")
async def checkpoint_before_a_reset(context: ScenarioContext) -> None:
    """An operator that waits for a reset, or is between its callbacks, refuses to write a checkpoint."""
    job = await run_job(context)
    await job.ask("revoke", "A")
    await job.ask("drain", "A", error="")
    await job.write("A", 1, check="REGION-30")
    await job.assign("A", 0, 1)
    await job.write("A", 1, check="REGION-30")
    await job.reset(0)
    await job.ask("revoke", "B")
    await job.ask("drain", "B", error="")
    await job.write("B", 1, check="REGION-30")


@checkpoints.add("REGION-30")
async def swap_before_a_reset(context: ScenarioContext) -> None:
    """Two operators that have swapped their partitions and wait for a reset refuse to write."""
    job = await run_job(context)
    for name in job.names:
        await job.ask("revoke", name)
    for name, partition in (("A", 1), ("B", 0)):
        await job.assign(name, partition)
    for name in job.names:
        await job.ask("drain", name, error="")
    for name in job.names:
        await job.write(name, 1, check="REGION-30")


@checkpoints.add("REGION-31")
async def checkpoint_without_an_owner(context: ScenarioContext) -> None:
    """A partition that nobody has at a checkpoint resumes where an earlier one left it."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    await job.ask("crash", "A")
    await job.ask("launch", "A", region=0, again=True)
    await job.reset(1)
    await job.complete_checkpoint(2)
    await job.reset(2, check="REGION-31")
    await job.assign("A", 0, check="REGION-31")


@checkpoints.add("REGION-32")
async def checkpoint_of_an_expelled_member(context: ScenarioContext) -> None:
    """An operator that Kafka has expelled since its commit refuses to write."""
    job = await run_job(context)
    await job.ask("drain", "A", error="")
    await job.write("A", 1, member=False, check="REGION-32")


@checkpoints.add("REGION-33", "REGION-34")
async def merge_of_three(context: ScenarioContext) -> None:
    """A merge is complete with the third operator, whatever the order, and not with the second one, twice."""
    job = await start_job(context, "ABC")
    for partition, name in enumerate(job.names):
        await job.assign(name, partition)
        await job.poll(name, (partition, 0))
        await job.pass_on(name)
    await job.complete_checkpoint(1)
    await job.contribute("C", 1, check="REGION-33")
    await job.contribute("A", 1, check="REGION-33")
    await job.contribute("A", 1, check="REGION-33")
    await job.check("REGION-33", "finish", "A", number=1)
    await job.contribute("B", 1, check="REGION-33")
    for name in job.names:
        await job.check(("REGION-33", "REGION-34"), "finish", name, number=1)
    await job.ask("revoke", "A")
    await job.assign("A", 0, 1, 2, check="REGION-34")
