"""A run of an entry's plan on its target again, and where the verdicts differ."""

import shlex
from collections.abc import Iterator

from fencepost.conformance.plan import Plan
from fencepost.conformance.protocols.registry import is_bundled
from fencepost.conformance.registry.entries import PROFILE_FILE, RegistryEntry, RegistryError
from fencepost.conformance.results import Report, Verdict
from fencepost.conformance.specification import CLIENT_SPECIFICATION

DECIDED = (Verdict.PASS, Verdict.FAIL, Verdict.KNOWN)
"""The verdicts that another run on the same target has to give again."""


def plan_again(entry: RegistryEntry, target: str | None) -> Plan:
    """The plan of an entry's run, on its own target or on another one. Raises `RegistryError` if it has none."""
    origin = entry.report.provenance
    if origin is None or origin.plan is None:
        raise RegistryError(f"{entry.folder}: the report does not say with which options it was made")
    profile = entry.folder / PROFILE_FILE
    record = origin.plan
    if entry.report.specification is CLIENT_SPECIFICATION:
        raise RegistryError(f"{entry.folder}: a client is run again by its command: {shlex.join(record.command)}")
    own = next(filter(is_bundled, record.command), "")
    if not own and target is None and not profile.exists():
        raise RegistryError(f"{entry.folder}: no {PROFILE_FILE} that starts the target; name one with --target")
    return Plan(
        target=own if target is None else target,
        slow=record.slow,
        seed=record.seed,
        schedules=record.schedules,
        tours=record.tours,
        intrusive=record.intrusive,
        profile=profile if profile.exists() else None,
    )


def find_differences(old: Report, new: Report) -> Iterator[str]:
    """The requirements that one run decided and the other one decided otherwise, a line each."""
    again = {result.id: result.verdict for result in new.results}
    for result in old.results:
        verdict = again.get(result.id)
        if verdict is not None and verdict is not result.verdict and {verdict, result.verdict} <= set(DECIDED):
            yield f"{result.id}: {result.verdict} in the registry, {verdict} now"
