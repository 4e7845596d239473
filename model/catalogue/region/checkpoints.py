"""Requirements of a consistent region: drain, checkpoint, merge."""

from fencepost.model.catalogue.requirement import Requirement, must

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
