"""Scenarios that show the known bugs of coordinators once they are put back."""

from collections.abc import Mapping
from pathlib import Path

from fencepost.conformance.classic.scenarios import ALL
from fencepost.conformance.classic.zoo.bugs import COORDINATOR_BUGS
from fencepost.conformance.classic.zoo.coordinator_stand import COORDINATORS, CoordinatorFault
from fencepost.traces.files.trace_files import write_trace

WITNESSES: Mapping[str, tuple[str, str]] = {
    "BUG-01": ("old-commit-to-an-unknown-group", "COMMIT-11"),
    "BUG-02": ("new-member-needs-no-session", "HB-06"),
    "BUG-03": ("overtaken-assignment-is-forgotten", "SYNC-19"),
    "BUG-04": ("full-session-after-a-parked-sync", "TIMER-05"),
    "BUG-05": ("stable-group-comes-back", "FAILOVER-02"),
    "BUG-06": ("commits-extend-the-session", "COMMIT-19"),
    "BUG-07": ("nothing-to-offer", "JOIN-15"),
    "BUG-08": ("dropped-member-has-no-session", "TIMER-25"),
    "BUG-09": ("new-member-is-dropped-after-five-minutes", "TIMER-06"),
    "BUG-10": ("pending-id-leaves", "LEAVE-10"),
    "BUG-11": ("answers-from-the-first-moment", "FAILOVER-01"),
    "BUG-12": ("parked-sync-of-the-old-owner", "STATIC-05"),
    "BUG-13": ("replacement-ids-are-fresh", "STATIC-24"),
    "BUG-14": ("live-member-outlasts-five-minutes", "TIMER-05"),
    "BUG-15": ("silence-before-the-first-sync", "TIMER-01"),
    "BUG-16": ("group-above-the-limit", "FAILOVER-17"),
    "BUG-17": ("replacement-survives", "STATIC-28"),
    "BUG-18": ("full-session-after-loading", "FAILOVER-04"),
    "BUG-19": ("sync-timeout-despite-heartbeats", "TIMER-11"),
    "BUG-20": ("commits-outlast-a-rebalance", "COMMIT-25"),
    "BUG-21": ("rebalance-timeout-of-the-last-join-counts", "TIMER-27"),
    "BUG-22": ("commit-without-generation-in-empty", "COMMIT-08"),
    "BUG-23": ("refused-offset-is-not-under-way", "COMMIT-15"),
    "BUG-24": ("answers-from-the-first-moment", "FAILOVER-01"),
    "BUG-25": ("newcomer-in-completing", "SYNC-18"),
    "BUG-26": ("dropped-connection-still-counts", "JOIN-52"),
    "BUG-27": ("parked-join-protects-the-session", "TIMER-03"),
    "BUG-28": ("leader-rejoins-in-stable", "JOIN-31"),
    "BUG-29": ("removal-by-instance-id", "JOIN-37"),
    "BUG-30": ("fetch-the-last-commit", "FETCH-01"),
    "BUG-31": ("no-common-protocol", "JOIN-17"),
    "BUG-32": ("order-is-preference", "GEN-10"),
    "BUG-33": ("share-of-a-leaver-is-given-away", "FAILOVER-21"),
    "BUG-34": ("commit-of-unknown-partitions", "COMMIT-13"),
    "BUG-35": ("one-successor", "JOIN-37"),
    "BUG-36": ("pending-id-expires", "TIMER-08"),
    "BUG-37": ("leader-has-rejoined", "GEN-06"),
    "BUG-38": ("everyone-rejoins-in-time", "TIMER-26"),
    "BUG-39": ("leave-completes-the-join-phase", "LEAVE-07"),
    "BUG-40": ("same-again-in-completing", "JOIN-29"),
    "BUG-41": ("initial-delay-is-not-cut-short", "TIMER-18"),
    "BUG-42": ("answers-from-the-first-moment", "FAILOVER-01"),
    "BUG-43": ("simple-group-comes-back", "COMMIT-18"),
    "BUG-44": ("commit-of-a-stranger-in-completing", "COMMIT-06"),
    "BUG-45": ("lost-commit-stays-lost", "FAILOVER-12"),
    "BUG-46": ("version-0-has-one-timeout", "JOIN-42"),
    "BUG-47": ("leave-keeps-the-initial-delay", "LEAVE-04"),
    "BUG-48": ("change-in-completing", "JOIN-27"),
    "BUG-49": ("handed-out-ids-are-fresh", "JOIN-10"),
    "BUG-50": ("sync-after-an-unchanged-rejoin", "SYNC-16"),
    "BUG-51": ("leader-has-rejoined", "SYNC-10"),
    "BUG-52": ("pending-id-that-left", "LEAVE-04"),
    "BUG-53": ("newcomer-in-completing", "JOIN-25"),
    "BUG-54": ("silence-before-the-first-sync", "TIMER-01"),
    "BUG-55": ("commit-of-a-stranger", "COMMIT-05"),
    "BUG-56": ("commit-in-preparing", "COMMIT-02"),
    "BUG-57": ("commits-after-a-restart-survive-another", "COMMIT-25"),
}
"""The scenario that shows each bug, and a requirement that is then seen broken."""


def shown_by(bug: CoordinatorFault, scenario: str) -> frozenset[str]:
    """The requirements that the scenario sees broken, and does when it is played again."""
    (chosen,) = (one for one in ALL if one.name == scenario)
    first, again = (COORDINATORS.run_with(bug, chosen, attempt) for attempt in ("run", "replay"))
    return first.verdict.violated & again.verdict.violated


def record_bug(number: str, folder: Path) -> Path:
    """The trace of the scenario that shows a bug, in a file."""
    (chosen,) = (one for one in ALL if one.name == WITNESSES[number][0])
    played = COORDINATORS.run_with(COORDINATOR_BUGS[number], chosen)
    path = folder / f"{number}.jsonl"
    write_trace(path, played.header, played.events)
    return path
