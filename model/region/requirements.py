"""The requirements of a consumer group in a consistent region, read from the design page, as data."""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.requirement import Requirement, must

# Requirements of a consistent region: the group, its bean, the threads of an operator.


GROUPS: tuple[Requirement, ...] = (
    must(
        "REGION-01",
        "One region for a group",
        "All operators of a group have the same region index, and initialisation fails at one that has another.",
        "page, sections Assume, Init",
    ),
    must(
        "REGION-02",
        "One bean for a group",
        "Operators that create the bean of their group at the same time end up with one bean.",
        "page, section Init",
    ),
    must(
        "REGION-03",
        "Registration at every connection",
        "An operator registers its name whenever it connects to the job control plane, after a restart of that too.",
        "page, section Shared",
    ),
    must(
        "REGION-04",
        "Subscribed without partitions",
        "An operator that has subscribed is SUBSCRIBED and holds no partition.",
        "page, section Init",
    ),
    must(
        "REGION-05",
        "No control port",
        "A control input port is refused in a consistent region.",
        "page, section Assume",
    ),
    must(
        "REGION-06",
        "Start positions",
        "A start position is the beginning, the end, the committed offset or a time, and never a specific offset.",
        "page, section Assume",
    ),
    must(
        "REGION-07",
        "Capacity of the queue",
        "The queue holds 100 times max.poll.records messages, 50,000 by default.",
        "page, section Threads",
    ),
    must(
        "REGION-08",
        "A full queue stops fetching",
        "Fetching never makes the queue overflow.",
        "page, section Threads",
        incidental=True,
    ),
    must(
        "REGION-09",
        "One thread has the client",
        "Only the event thread calls the Kafka client.",
        "page, section Threads",
        untestable="the kit takes an operator from step to step, and does not see its threads",
    ),
    must(
        "REGION-10",
        "Tuples need a permit",
        "A tuple is submitted only with a permit of the region.",
        "page, section Threads",
        incidental=True,
    ),
    must(
        "REGION-11",
        "The offset after a submission",
        "After a submission the offset manager holds the offset that follows in that partition.",
        "page, section Threads",
        incidental=True,
    ),
)


# Requirements of a consistent region: revocation and assignment.


CALLBACKS: tuple[Requirement, ...] = (
    must(
        "REGION-12",
        "Revocations that need no reset",
        "A revocation at an operator that is SUBSCRIBED or RESET_COMPLETE requests no reset.",
        "page, sections Revoke, After-reset",
    ),
    must(
        "REGION-13",
        "Revocation after a fetch",
        "A revocation in RECORDS_FETCHED clears the queue, stops polling, forces a reset and waits for it.",
        "page, section Revoke",
    ),
    must(
        "REGION-14",
        "Nothing is queued before a reset",
        "An operator in CR_RESET_PENDING enqueues no record that it fetches.",
        "page, section Revoke",
        incidental=True,
    ),
    must(
        "REGION-15",
        "Requests are not forgotten",
        "A reset that an operator requests is performed at that operator, whatever the region is doing.",
        "page, section Revoke",
    ),
    must(
        "REGION-16",
        "Reset before or after the assignment",
        "A reset that comes before the assignment leads to the same positions as one that comes after it.",
        "page, section Revoke",
    ),
    must(
        "REGION-17",
        "Offsets follow the assignment",
        "An assignment removes the offsets of partitions that are gone and adds the new partitions.",
        "page, section Assign",
    ),
    must(
        "REGION-18",
        "Order of start offsets",
        "A partition is sought to the merged checkpoint, else its control variable, else the start position.",
        "page, section Assign",
    ),
    must(
        "REGION-19",
        "No seek before a reset",
        "An assignment at an operator in CR_RESET_PENDING seeks nothing.",
        "page, section Assign",
        incidental=True,
    ),
    must(
        "REGION-20",
        "Initial offsets stay",
        "The initial offset of a partition is stored once and never changes.",
        "page, sections Shared, Assign",
        incidental=True,
    ),
    must(
        "REGION-21",
        "The stored initial offset counts",
        "An operator that finds a control variable made by another one fetches from the offset in it.",
        "page, section Shared",
    ),
    must(
        "REGION-22",
        "Metrics of an assignment",
        "The metrics show the number of assigned partitions and that of their topics.",
        "page, section Assign",
    ),
)


# Requirements of a consistent region: drain, checkpoint, merge.


CHECKPOINTS: tuple[Requirement, ...] = (
    must(
        "REGION-23",
        "Polling stops before the commit",
        "A drain stops polling before it commits.",
        "page, section Drain",
    ),
    must(
        "REGION-24",
        "A drain leaves nothing in hand",
        "A drain puts the queue into the buffer and returns with no message in hand.",
        "page, section Drain",
    ),
    must(
        "REGION-25",
        "One commit for all partitions",
        "A drain commits the offsets of all partitions in one request that it waits for.",
        "page, section Drain",
    ),
    must(
        "REGION-26",
        "A failed commit restarts the operator",
        "A commit that fails for any partition restarts the operator and resets the region.",
        "page, section Drain",
    ),
    must(
        "REGION-27",
        "Times of drains",
        "The metrics show the time of the last drain and the longest one in milliseconds.",
        "page, section Drain",
    ),
    must(
        "REGION-28",
        "What a checkpoint contains",
        "A checkpoint contains the operator's name, the names of all members and the offsets of its partitions.",
        "page, section Ckpt-data",
    ),
    must(
        "REGION-29",
        "One set of names in a merge",
        "All contributions to one merge name the same members.",
        "page, sections Ckpt-data, Reset-ckpt",
        incidental=True,
    ),
    must(
        "REGION-30",
        "Checkpoints that are refused",
        "No checkpoint is completed while an operator waits for a reset or lacks an offset.",
        "page, sections Drain, Revoke",
        incidental=True,
    ),
    must(
        "REGION-31",
        "A checkpoint covers what was read",
        "A complete checkpoint covers every partition that the group has ever read.",
        "page, sections Ckpt-data, Reset-ckpt",
        incidental=True,
    ),
    must(
        "REGION-32",
        "Contributions are disjoint",
        "No two operators contribute the same partition to one merge.",
        "page, section Reset-ckpt",
        incidental=True,
    ),
    must(
        "REGION-33",
        "N contributions of N names",
        "A merge completes once operators of N different names have contributed for its sequence id, and not before.",
        "page, section Reset-ckpt",
    ),
    must(
        "REGION-34",
        "The union of the contributions",
        "The merged map is the union of the contributions in whatever order they come.",
        "page, section Reset-ckpt",
    ),
)


# Requirements of a consistent region: resets, and what they are for.


RESETS: tuple[Requirement, ...] = (
    must(
        "REGION-35",
        "One map for all",
        "All operators resume from the same merged map.",
        "page, section Reset-ckpt",
        incidental=True,
    ),
    must(
        "REGION-36",
        "Notifications of other checkpoints",
        "An operator acts only on the notification of the checkpoint that it is being reset to.",
        "page, section Reset-ckpt",
    ),
    must(
        "REGION-37",
        "The same checkpoint again",
        "A second reset to a checkpoint works for operators that were relaunched and for those that were not.",
        "page, section Reset-ckpt",
    ),
    must(
        "REGION-38",
        "Time to wait for a merge",
        "An operator waits half the reset timeout, half of max.poll.interval.ms or 15 seconds, whichever is least.",
        "page, section Reset-ckpt",
        untestable="the repaired design waits as long as the region's reset may last (REGION-H16)",
    ),
    must(
        "REGION-39",
        "A wait that ends",
        "A merge that comes too late fails the operator's reset, and another attempt follows up to their maximum.",
        "page, section Reset-ckpt",
    ),
    must(
        "REGION-40",
        "Retiring a checkpoint",
        "Retiring a checkpoint removes its merges and notifications and nothing of a later one.",
        "page, section Reset-ckpt",
    ),
    must(
        "REGION-41",
        "Clear before seeking",
        "A reset stops polling and empties buffer and queue before it seeks.",
        "page, sections Reset-init, Reset-ckpt",
    ),
    must(
        "REGION-42",
        "Nothing from before a reset",
        "No message that was taken before a reset is submitted after it.",
        "page, sections Reset-init, Reset-ckpt",
        incidental=True,
    ),
    must(
        "REGION-43",
        "Reset to the initial state",
        "A reset to the initial state seeks every assigned partition to its control variable.",
        "page, section Reset-init",
    ),
    must(
        "REGION-44",
        "State after a reset",
        "After a reset the offset manager has the positions, the state is RESET_COMPLETE and polling throttled.",
        "page, sections Reset-init, Reset-ckpt",
    ),
    must(
        "REGION-45",
        "Assignment after a reset",
        "An assignment after a reset seeks the merged map, for partitions that the operator never had too.",
        "page, section After-reset",
    ),
    must(
        "REGION-46",
        "Partitions that are added",
        "Whoever gets a partition that was added reads it from its control variable, before and after resets.",
        "page, sections Intro, Assign",
    ),
    must(
        "REGION-47",
        "Nothing is lost",
        "Every record is in the state of a complete checkpoint in the end.",
        "page, section Intro",
        incidental=True,
    ),
    must(
        "REGION-48",
        "Nothing comes twice",
        "No record is twice in the state of a complete checkpoint.",
        "page, section Intro",
        incidental=True,
    ),
    must(
        "REGION-49",
        "The control plane restarts",
        "A restart of the job control plane during a merge only delays the reset.",
        "page, section Shared",
    ),
    must(
        "REGION-50",
        "Resets for a rebalance",
        "A rebalance causes no more resets of the region than the group has operators.",
        "page, section Revoke",
        incidental=True,
    ),
    must(
        "REGION-51",
        "Cooperative assignment",
        "Cooperative assignors are refused, or their callbacks lead to a reset.",
        "page, section Revoke",
    ),
    must(
        "REGION-52",
        "Offsets that are gone",
        "A reset to an offset that the log no longer has is reported, and nothing is skipped.",
        "page, section Reset-ckpt",
    ),
)


# The requirements of a consumer group in a consistent region, read from the design page, and its holes, as data.


REGION_CATALOGUE: Mapping[str, Requirement] = MappingProxyType(
    {each.id: each for family in (GROUPS, CALLBACKS, CHECKPOINTS, RESETS) for each in family}
)
"""Every requirement by its id."""
