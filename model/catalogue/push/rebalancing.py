"""Requirements of the push coordinator: assignment, Stop and Start, owners, failover."""

from fencepost.model.catalogue.requirement import Requirement, must

REBALANCING: tuple[Requirement, ...] = (
    must(
        "PUSH-34",
        "The assignment is a partition",
        "The assignment covers all partitions of all interested topics and is disjoint.",
        "draft, sections 7 (1), Overview",
        incidental=True,
    ),
    must(
        "PUSH-35",
        "Each its own part",
        "Each Start contains only the partitions of its addressee.",
        "draft, sections Overview, 9-start",
    ),
    must(
        "PUSH-36",
        "Skipping needs a true map",
        "A rebalance is skipped only if every member really runs the recorded assignment.",
        "draft, section 7 (3)",
        incidental=True,
    ),
    must(
        "PUSH-37",
        "Stop before Start",
        "Within one attempt each member gets Stop before Start on the same channel.",
        "draft, sections 7 (4.1, 4.2)",
    ),
    must(
        "PUSH-38",
        "All stop before one starts",
        "No member starts before all members of the attempt have stopped.",
        "draft, sections 9-start, 9-stop",
    ),
    must(
        "PUSH-39",
        "All responses of the attempt",
        "The attempt completes only with the responses of all its members to its own Start.",
        "draft, section 7 (4.3)",
    ),
    must(
        "PUSH-40",
        "Owners are recorded last",
        "Ownership is written only after all responses and equals the started fetchers.",
        "draft, section 7 (5)",
        untestable="only ZooKeeper shows the recorded owners",
    ),
    must(
        "PUSH-41",
        "A timed-out attempt",
        "A timed-out attempt leaves ownership unwritten and the next attempt sends Stop to every member again.",
        "draft, section 7 (5)",
    ),
    must(
        "PUSH-42",
        "Nothing given away after a failover",
        "After a failover no partition is given away while a consumer of the old coordinator may still fetch it.",
        "draft, sections 8, Open 3",
        incidental=True,
    ),
    must(
        "PUSH-43",
        "Groups recover after a failover",
        "After a failover every group whose members return is fetched again.",
        "draft, section 8",
        incidental=True,
    ),
    must(
        "PUSH-44",
        "A new session forgets",
        "A new session discards all in-memory state of the old one, including the bits, running handlers and channels.",
        "draft, section 8 (1)",
        incidental=True,
    ),
)
