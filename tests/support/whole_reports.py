"""Reports of whole runs of the catalogue, as a run on a named target makes them."""

from fencepost.conformance.plan import Plan
from fencepost.conformance.results import Machine, NamedBy, Provenance, Report, RequirementResult, Verdict
from fencepost.conformance.run.provenance import record_plan
from fencepost.conformance.specification import DEFAULT_SPECIFICATION

REQUIREMENTS = DEFAULT_SPECIFICATION.requirements
PROVENANCE = Provenance(
    "2026-11-22T12:00:00Z",
    Machine("3.12.0", "linux", 2, "", ""),
    record_plan(Plan("kafka://127.0.0.1:9092")),
    named_by=NamedBy.TARGET,
)


def full_report(**verdicts: Verdict) -> Report:
    """The report of a whole run in which everything is kept, but for these requirements (`JOIN_29`)."""
    changed = {id.replace("_", "-"): verdict for id, verdict in verdicts.items()}
    results = tuple(RequirementResult(id, changed.get(id, Verdict.PASS), checks=1) for id in REQUIREMENTS)
    return Report({"name": "acme", "version": "1.4.2"}, 0, results, provenance=PROVENANCE)


ALL_KEPT = full_report()
