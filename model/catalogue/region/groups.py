"""Requirements of a consistent region: the group, its bean, the threads of an operator."""

from fencepost.model.catalogue.requirement import Requirement, must

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
