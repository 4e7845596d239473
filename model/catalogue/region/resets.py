"""Requirements of a consistent region: resets, and what they are for."""

from fencepost.model.catalogue.requirement import Requirement, must

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
