"""Requirements of a consistent region: revocation and assignment."""

from fencepost.model.catalogue.requirement import Requirement, must

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
