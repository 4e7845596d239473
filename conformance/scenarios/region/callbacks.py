"""Revocation and assignment."""

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.region.job import run_job, start_job

callbacks = ScenarioFamily()


@callbacks.add("REGION-12", smoke=True)
async def revocation_without_records(context: ScenarioContext) -> None:
    """An operator that is SUBSCRIBED or RESET_COMPLETE asks for no reset when it is revoked."""
    job = await start_job(context)
    await job.assign("A", 0)
    await job.check("REGION-12", "revoke", "A")
    await job.assign("A", 0)
    await job.reset(0)
    await job.check("REGION-12", "revoke", "A")
    await job.assign("A", 0, check="REGION-12")


@callbacks.add("REGION-13", "REGION-14", "REGION-19", smoke=True)
async def revocation_after_records(context: ScenarioContext) -> None:
    """An operator that has fetched clears its queue, asks for a reset, queues nothing and seeks nothing until then."""
    job = await run_job(context)
    await job.poll("A", (0, 1), (0, 2))
    await job.check("REGION-13", "revoke", "A")
    await job.assign("A", 0, 1, check="REGION-19")
    await job.poll("A", (0, 3), check="REGION-14")


@callbacks.add("REGION-50")
async def resets_for_a_rebalance(context: ScenarioContext) -> None:
    """In a rebalance of four each operator asks for a reset at most once, and after the reset none does."""
    job = await start_job(context, "ABCD")
    for partition, name in enumerate(job.names):
        await job.assign(name, partition)
        await job.poll(name, (partition, 0))
    for name in job.names:
        await job.check("REGION-50", "revoke", name)
    for partition, name in enumerate(reversed(job.names)):
        await job.assign(name, partition, check="REGION-50")
        await job.poll(name, (partition, 0), check="REGION-50")
    await job.reset(0)
    for name in job.names:
        await job.check("REGION-50", "revoke", name)
        await job.assign(name, check="REGION-50")


@callbacks.add("REGION-15")
async def request_during_a_reset(context: ScenarioContext) -> None:
    """An operator that was reset already is revoked during the reset, asks for another one, and gets it."""
    job = await run_job(context)
    await job.check("REGION-15", "reset", "A", number=0)
    await job.poll("A", (0, 0))
    await job.check("REGION-15", "revoke", "A")
    await job.ask("reset", "B", number=0)
    await job.reset(0, check="REGION-15")


@callbacks.add("REGION-16")
async def reset_around_an_assignment(context: ScenarioContext) -> None:
    """A reset before the assignment and one after it lead to the same positions."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    for name in job.names:
        await job.ask("revoke", name)
    await job.assign("A", 1, check="REGION-16")
    await job.reset(1, check="REGION-16")
    await job.assign("B", 0, check="REGION-16")


@callbacks.add("REGION-17", "REGION-22")
async def offsets_follow_the_assignment(context: ScenarioContext) -> None:
    """Offsets of partitions that are gone are removed, and new ones added; the metrics say how many."""
    job = await start_job(context)
    for partitions in ((0, 1), (1, 2), (), (0, 3)):
        await job.assign("A", *partitions, check=("REGION-17", "REGION-22"))
        await job.check("REGION-17", "revoke", "A")


@callbacks.add("REGION-18", "REGION-20", "REGION-21")
async def start_offsets(context: ScenarioContext) -> None:
    """A partition is sought to the merged checkpoint, else the control variable, else the start position, in each of
    the eight combinations of what there is."""
    job = await start_job(context)
    # Nothing but the start position; then the variable of another operator against a later start position.
    await job.assign("A", 0, starts={0: 10}, check="REGION-18")
    await job.assign("B", 1, starts={1: 20}, check="REGION-18")
    for name in job.names:
        await job.ask("revoke", name)
    await job.assign("A", 1, starts={1: 99}, check=("REGION-18", "REGION-20", "REGION-21"))
    await job.assign("B", 0, starts={0: 99}, check=("REGION-18", "REGION-20", "REGION-21"))
    await job.poll("A", (1, 20))
    await job.pass_on("A")
    await job.complete_checkpoint(1)
    await job.reset(1)
    # A map with entries, for partitions that this operator had and for others, and a partition that is new.
    for name in job.names:
        await job.ask("revoke", name)
    await job.assign("A", 0, 2, starts={0: 50, 2: 30}, check="REGION-18")
    await job.assign("B", 1, 3, starts={1: 50, 3: 40}, check="REGION-18")
    await job.reset(0, check="REGION-18")


@callbacks.add("REGION-45", "REGION-46")
async def owners_swap_after_a_reset(context: ScenarioContext) -> None:
    """Whoever gets a partition after a reset goes on where the merged checkpoint says; a new one begins at its
    variable."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    await job.reset(1)
    for name in job.names:
        await job.ask("revoke", name)
    await job.assign("A", 1, 2, starts={1: 9, 2: 7}, check=("REGION-45", "REGION-46"))
    await job.assign("B", 0, check="REGION-45")
    await job.ask("revoke", "A")
    await job.ask("revoke", "B")
    await job.assign("A", check="REGION-45")
    await job.assign("B", 0, 1, 2, starts={2: 9}, check=("REGION-45", "REGION-46"))
    await job.poll("B", (2, 7))
    await job.reset(1, check="REGION-46")


@callbacks.add("REGION-45")
async def an_old_seek_map(context: ScenarioContext) -> None:
    """After a later checkpoint an operator does not seek by the map of an earlier one: it asks for a reset."""
    job = await start_job(context)
    await job.assign("A", 0)
    await job.assign("B")
    await job.poll("A", (0, 0))
    await job.pass_on("A")
    await job.complete_checkpoint(1)
    await job.ask("revoke", "B")
    await job.assign("B", 0, check="REGION-45")


@callbacks.add("REGION-51")
async def assignment_without_revocation(context: ScenarioContext) -> None:
    """A cooperative assignment, which no revocation precedes, leads to a reset."""
    job = await run_job(context)
    await job.poll("A", (0, 1))
    await job.assign("A", 2, check="REGION-51")
    await job.poll("A", (2, 0), check="REGION-51")
