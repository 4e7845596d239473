"""How a client finds the coordinator of a group."""

from fencepost.model.catalogue.requirement import Requirement, must, should

FIND: tuple[Requirement, ...] = (
    must(
        "FIND-01",
        "Lookup names a usable node",
        "A lookup of key type 0 for any string succeeds and names a node that then accepts group requests for that "
        "group.",
        "consumer group protocol chapter, Kafka message schema",
    ),
    must(
        "FIND-02",
        "Lookup creates nothing",
        "The answer to a lookup does not depend on whether the group exists, and looking a group up does not create "
        "it.",
        "Apache Kafka source",
    ),
    must(
        "FIND-03",
        "Lookups agree",
        "Lookups of the same group name the same node for as long as nothing moves, whichever node is asked.",
        "consumer group protocol chapter",
    ),
    must(
        "FIND-04",
        "Node follows from the group id",
        "On Kafka the named node leads partition abs(h) mod n of the offsets topic, where h is the Java string hash "
        "of the group id and abs(-2^31) counts as 0.",
        "consumer group protocol chapter, GroupCoordinatorServiceTest",
        needs=("second-node",),
    ),
    must(
        "FIND-05",
        "Batched lookup",
        "From version 4 on a lookup is answered with one entry per key, each echoing its key and carrying its own "
        "error.",
        "KIP-699, Kafka message schema",
    ),
    must(
        "FIND-06",
        "Answer layout by version",
        "A lookup is answered in top-level fields up to version 3, and in the list of coordinators from version 4 on.",
        "Kafka message schema",
    ),
    must(
        "FIND-07",
        "Unknown key type",
        "A lookup with an unknown key type is refused with INVALID_REQUEST.",
        "Apache Kafka source",
    ),
    must(
        "FIND-08",
        "No coordinator to name",
        "While no coordinator can be named, a lookup is answered COORDINATOR_NOT_AVAILABLE with node -1.",
        "Kafka message schema, Apache Kafka source",
        incidental=True,
    ),
    should(
        "FIND-09",
        "Lookup of the empty group id",
        "A lookup of the empty group id should succeed like that of any other.",
        "Apache Kafka source",
    ),
    must(
        "FIND-10",
        "Wrong node",
        "A group request sent to a node that is not the coordinator is answered NOT_COORDINATOR and changes nothing.",
        "GroupCoordinatorTest",
        needs=("second-node",),
    ),
)
