"""Resets to the initial state and to a merged checkpoint."""

from fencepost.conformance.scenario.context import ScenarioContext
from fencepost.conformance.scenario.scenario import ScenarioFamily
from fencepost.conformance.scenarios.region.job import run_job, start_job

resets = ScenarioFamily()


@resets.add("REGION-35", smoke=True)
async def one_map_for_all(context: ScenarioContext) -> None:
    """All operators seek what is assigned to them by the same merged map."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    await job.poll("A", (0, 1))
    await job.pass_on("A")
    await job.reset(1, check="REGION-35")
    for name in job.names:
        await job.ask("revoke", name)
        await job.assign(name, 0, 1, check="REGION-35")
        await job.ask("revoke", name)


@resets.add("REGION-36")
async def merge_of_another_checkpoint(context: ScenarioContext) -> None:
    """The merge of checkpoint 1 is complete; an operator that is reset to checkpoint 2 waits for that one."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    await job.reset(1)
    await job.poll("A", (0, 1))
    await job.pass_on("A")
    await job.complete_checkpoint(2)
    await job.contribute("A", 2, check="REGION-36")
    await job.check("REGION-36", "finish", "A", number=2)
    await job.contribute("B", 2)
    await job.check("REGION-36", "finish", "A", number=2)


@resets.add("REGION-37")
async def same_checkpoint_again(context: ScenarioContext) -> None:
    """A second reset to a checkpoint works, with an operator that was relaunched since the first one."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    await job.reset(1)
    await job.ask("crash", "A")
    await job.ask("launch", "A", region=0, again=True)
    await job.contribute("A", 1)
    await job.check("REGION-37", "finish", "A", number=1)
    await job.contribute("B", 1)
    await job.check("REGION-37", "finish", "B", number=1)


@resets.add("REGION-40")
async def retired_checkpoint(context: ScenarioContext) -> None:
    """Retiring a checkpoint leaves the merge of a later one."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    for name in job.names:
        await job.ask("drain", name, error="")
    for name in job.names:
        await job.write(name, 2)
    await job.contribute("A", 2)
    await job.ask("retire", number=1)
    await job.contribute("B", 2)
    for name in job.names:
        await job.check("REGION-40", "finish", name, number=2)


@resets.add("REGION-41", "REGION-42")
async def cleared_before_seeking(context: ScenarioContext) -> None:
    """A reset empties queue and buffer; nothing that was fetched before is submitted after it."""
    job = await run_job(context)
    await job.poll("A", (0, 1), (0, 2))
    await job.ask("drain", "A", error="")
    await job.reset(0, check="REGION-41")
    await job.check(("REGION-41", "REGION-42"), "take", "A", permit=True)
    await job.poll("A", (0, 0), check="REGION-42")
    await job.pass_on("A", check="REGION-42")


@resets.add("REGION-39")
async def late_merge(context: ScenarioContext) -> None:
    """A merge that is not complete in time fails the reset of an operator, which seeks nothing; the next attempt
    succeeds."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    await job.contribute("A", 1)
    await job.check("REGION-39", "finish", "A", number=1, late=True)
    await job.reset(1, check="REGION-39")


@resets.add("REGION-52")
async def reset_into_deleted_records(context: ScenarioContext) -> None:
    """An operator whose log no longer has the offset of its reset fails, and does not go on behind it."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    await job.reset(1)
    await job.poll("B", (1, 1), check="REGION-52")
    await job.poll("A", (0, 4), (0, 5), check="REGION-52")


@resets.add("REGION-43", "REGION-44")
async def initial_state_again(context: ScenarioContext) -> None:
    """Each reset to the initial state leads to the same positions, which are those of the control variables."""
    job = await start_job(context)
    await job.assign("A", 0, 1, starts={0: 5, 1: 6})
    for _ in range(3):
        await job.poll("A", (0, 5), (1, 6), (0, 6))
        await job.pass_on("A", 2)
        await job.reset(0, check=("REGION-43", "REGION-44"))


@resets.add("REGION-44")
async def state_after_a_reset(context: ScenarioContext) -> None:
    """After a reset the offset manager has the positions and polling is throttled, until a permit comes."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    await job.poll("A", (0, 1))
    await job.reset(1, check="REGION-44")
    await job.poll("A", (0, 1))
    await job.check("REGION-44", "take", "A", permit=True)


@resets.add("REGION-49")
async def restart_in_a_merge(context: ScenarioContext) -> None:
    """A restart of the control plane between two contributions, and after both, only delays the reset."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    await job.contribute("A", 1)
    await job.ask("restart")
    await job.contribute("B", 1)
    await job.ask("restart")
    await job.check("REGION-49", "finish", "A", number=1)
    await job.ask("restart")
    await job.check("REGION-49", "finish", "B", number=1)


@resets.add("REGION-47", "REGION-48", smoke=True)
async def records_through_a_reset(context: ScenarioContext) -> None:
    """Owners swap in a reset, and read again what is not in the checkpoint: each record is in the next checkpoint
    once."""
    job = await run_job(context)
    await job.complete_checkpoint(1)
    for name, partition in (("A", 0), ("B", 1)):
        await job.poll(name, (partition, 1), (partition, 2))
        await job.pass_on(name)
    await job.reset(1)
    for name in job.names:
        await job.ask("revoke", name)
    for name, partition in (("A", 1), ("B", 0)):
        seeks = (await job.assign(name, partition, check=("REGION-47", "REGION-48")))["seeks"] or {}
        first = seeks.get(str(partition), 0)
        await job.poll(name, *((partition, offset) for offset in range(first, 3)))
        await job.pass_on(name, 2, check=("REGION-47", "REGION-48"))
    for name in job.names:
        await job.ask("drain", name, error="")
    for name in job.names:
        await job.write(name, 2, check=("REGION-47", "REGION-48"))
