"""The queue between the threads, and submissions."""

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.region.job import run_job, start_job

submissions = ScenarioFamily()
QUEUED_POLLS = 100


@submissions.add("REGION-07", "REGION-08")
async def full_queue(context: ScenarioContext) -> None:
    """The queue takes a hundred polls, and then none until there is room for one."""
    job = await start_job(context, max_poll_records=2)
    await job.assign("A", 0)
    for number in range(QUEUED_POLLS):
        await job.poll("A", (0, 2 * number), (0, 2 * number + 1), check=("REGION-07", "REGION-08"))
    await job.poll("A", (0, 2 * QUEUED_POLLS), check=("REGION-07", "REGION-08"))
    await job.pass_on("A")
    await job.poll("A", (0, 2 * QUEUED_POLLS), check=("REGION-07", "REGION-08"))
    await job.pass_on("A")
    await job.poll("A", (0, 2 * QUEUED_POLLS), check=("REGION-07", "REGION-08"))


@submissions.add("REGION-10")
async def no_permit(context: ScenarioContext) -> None:
    """Without a permit the process thread does not take a message."""
    job = await start_job(context)
    await job.assign("A", 0)
    await job.poll("A", (0, 0))
    await job.check("REGION-10", "take", "A", permit=False)
    await job.check("REGION-10", "take", "A", permit=True)
    await job.check("REGION-10", "submit", "A", permit=True)


@submissions.add("REGION-11", smoke=True)
async def offset_after_a_submission(context: ScenarioContext) -> None:
    """After each submission the offset manager holds the following offset."""
    job = await start_job(context)
    await job.assign("A", 0, 1)
    await job.poll("A", (0, 0), (1, 0), (0, 1), (1, 1))
    await job.pass_on("A", 4, check="REGION-11")


@submissions.add("REGION-42")
async def late_submission(context: ScenarioContext) -> None:
    """A message that was taken before a revocation is not submitted after it, and brings its partition not back."""
    job = await run_job(context)
    await job.poll("A", (0, 1))
    await job.ask("take", "A", permit=True)
    await job.ask("revoke", "A")
    await job.check("REGION-42", "submit", "A", permit=True)
    await job.assign("A", 1)
    await job.reset(0)
    await job.poll("A", (1, 0), check="REGION-42")
    await job.pass_on("A", check="REGION-42")


@submissions.add("REGION-42")
async def assignment_in_hand(context: ScenarioContext) -> None:
    """The same with the assignment before the submission."""
    job = await run_job(context)
    await job.poll("A", (0, 1))
    await job.ask("take", "A", permit=True)
    await job.ask("revoke", "A")
    await job.assign("A", 1)
    await job.check("REGION-42", "submit", "A", permit=True)
