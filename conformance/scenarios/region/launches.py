"""The launch of operators: their region, their settings, their registration."""

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.region.job import open_job, run_job

launches = ScenarioFamily()


@launches.add("REGION-01")
async def another_region(context: ScenarioContext) -> None:
    """An operator of another region than its group's does not start; one of the same region does."""
    job = await open_job(context)
    await job.ask("launch", "A", region=3)
    await job.check("REGION-01", "launch", "B", region=4)
    await job.check("REGION-01", "launch", "B", region=3)


@launches.add("REGION-02", "REGION-04", smoke=True)
async def launch_of_all(context: ScenarioContext) -> None:
    """Operators subscribe without partitions, and share one bean: a merge waits for both and ends for both."""
    job = await open_job(context)
    for name in job.names:
        await job.check("REGION-04", "launch", name, region=0)
    for name, partition in (("A", 0), ("B", 1)):
        await job.assign(name, partition)
    await job.complete_checkpoint(1)
    await job.reset(1, check="REGION-02")


@launches.add("REGION-03")
async def registration_after_a_restart(context: ScenarioContext) -> None:
    """After a restart of the control plane both operators hear of a merge."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    await job.ask("restart")
    await job.reset(1, check="REGION-03")


@launches.add("REGION-05")
async def control_port(context: ScenarioContext) -> None:
    """An operator with a control input port does not start."""
    job = await open_job(context)
    await job.check("REGION-05", "launch", "A", region=0, control_port=True)
    await job.check("REGION-05", "launch", "A", region=0, control_port=False)


@launches.add("REGION-06")
async def start_positions(context: ScenarioContext) -> None:
    """A specific offset is no start position in a region; the others are."""
    job = await open_job(context, "ABCD")
    await job.check("REGION-06", "launch", "A", region=0, start_position="Offset")
    for name, position in zip(job.names, ("Beginning", "End", "Default", "Time"), strict=True):
        await job.check("REGION-06", "launch", name, region=0, start_position=position)
