"""Scenarios for operators of a consistent region: one job each, taken step by step through the line protocol."""

from fencepost.conformance.region.job import open_job, run_job, start_job
from fencepost.conformance.run.context import ScenarioContext, ScenarioFamily
from fencepost.conformance.subject import Scenario

# The launch of operators: their region, their settings, their registration.


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


# Revocation and assignment.


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


# The queue between the threads, and submissions.


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
    """A message taken before a revocation is not submitted after it, though its partition was assigned again."""
    job = await run_job(context)
    await job.poll("A", (0, 1))
    await job.ask("take", "A", permit=True)
    await job.ask("revoke", "A")
    await job.assign("A", 1)
    await job.check("REGION-42", "submit", "A", permit=True)


# Drain, checkpoint, merge.


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


# Resets to the initial state and to a merged checkpoint.


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


# Scenarios for operators of a consistent region: one job each, taken step by step through the line protocol.


ALL: tuple[Scenario, ...] = tuple(
    scenario for family in (launches, callbacks, submissions, checkpoints, resets) for scenario in family.scenarios
)
"""Every scenario, in the order of the page."""
