"""The checks of an entry: its report is of a whole run, holds together, and its failures can be judged again."""

from collections.abc import Iterator

from fencepost.adapters.client.cluster import CLIENT_LABEL
from fencepost.conformance.badges.badge import is_partial, make_badge, start_of
from fencepost.conformance.badges.drawing import badge_files
from fencepost.conformance.clients.classic import CLASSIC_CLIENTS
from fencepost.conformance.diagrams.excerpt import read_excerpt
from fencepost.conformance.profile import CLIENT_SECTIONS, SECTIONS, ProfileError, load_profile
from fencepost.conformance.provenance import NamedBy
from fencepost.conformance.registry.entries import PROFILE_FILE, REPORT_FILE, RegistryEntry
from fencepost.conformance.results import Failure, RequirementResult, Verdict
from fencepost.conformance.run.provenance import record_profile
from fencepost.conformance.specification import CLIENT_SPECIFICATION
from fencepost.model.catalogue.requirement import Tier
from fencepost.traces.client_judge.judge import is_client_trace, judge_client
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import violations_in

MAX_REPORT_BYTES = 2_000_000


def find_problems(entry: RegistryEntry) -> Iterator[str]:
    """What is wrong with an entry, a line each."""
    yield from (f"{entry.folder / REPORT_FILE}: {problem}" for problem in report_problems(entry))
    yield from (f"{entry.folder}: {problem}" for problem in place_problems(entry))
    yield from (f"{entry.folder / PROFILE_FILE}: {problem}" for problem in profile_problems(entry))
    yield from (f"{entry.folder / REPORT_FILE}: {problem}" for problem in failure_problems(entry))
    yield from (f"{entry.folder}: {problem}" for problem in badge_problems(entry))


def report_problems(entry: RegistryEntry) -> Iterator[str]:
    """Why a report is none for a registry: it takes a finished run of the whole catalogue on a target with a name."""
    report = entry.report
    size = (entry.folder / REPORT_FILE).stat().st_size
    if size > MAX_REPORT_BYTES:
        yield f"{size:,} bytes; at most {MAX_REPORT_BYTES:,}"
    if report.cut_short or report.ended is not None:
        yield "the run did not come to its end"
    if is_partial(report):
        yield "the run did not put the whole catalogue to the test"
    if start_of(report) is None:
        yield "it does not say when the run started"
    if report.provenance is None or report.provenance.named_by is NamedBy.NOBODY:
        yield "nobody names the target; the profile can, in [about]"


def place_problems(entry: RegistryEntry) -> Iterator[str]:
    """Where the names of the folders differ from the report."""
    kit = entry.report.kit
    version = entry.report.target.get("version") or (kit.version if kit is not None else None)
    if version is not None and version != entry.version:
        yield f"the report is on version {version!r}"
    if entry.folder.parent.parent.name != entry.shelf:
        yield f"not in {entry.shelf}/NAME/VERSION"
    unknown = sorted(set(entry.about.answers) - set(entry.report.specification.requirements))
    if unknown:
        yield f"an answer to {unknown[0]!r}, which is no requirement"


def profile_problems(entry: RegistryEntry) -> Iterator[str]:
    """Where the profile beside the report is not that of the run."""
    path = entry.folder / PROFILE_FILE
    recorded = entry.report.provenance.profile if entry.report.provenance is not None else None
    if not path.exists():
        if recorded is not None:
            yield "missing; the run had a profile"
        return
    try:
        is_of_client = entry.report.specification is CLIENT_SPECIFICATION
        profile = load_profile(path, CLIENT_SECTIONS if is_of_client else SECTIONS)
    except ProfileError as error:
        yield str(error)
        return
    if recorded != record_profile(profile):
        yield "differs from the one that the run had"


def failure_problems(entry: RegistryEntry) -> Iterator[str]:
    """The violations that do not show when their traces are judged again."""
    for result in entry.report.results:
        if result.verdict in (Verdict.FAIL, Verdict.KNOWN) and result.failures and not is_shown_again(result):
            yield f"{result.id}: judged again, no trace in the report violates it"


def is_shown_again(result: RequirementResult) -> bool:
    """Whether the trace of one of the failures violates the requirement. Failures without a trace cannot be judged."""
    traced = [failure for failure in result.failures if failure.excerpt]
    return not traced or any(violates(failure, result.id) for failure in traced)


def violates(failure: Failure, requirement: str) -> bool:
    """Whether the trace of a failure violates a requirement."""
    excerpt = read_excerpt(failure)
    if excerpt is None:
        return False
    header, events = excerpt
    if is_client_trace(header):
        return requirement in judge_client(header, events, CLIENT_LABEL, CLASSIC_CLIENTS.follow).violated
    return requirement in {violation.requirement for violation in violations_in(judge(header, events))}


def badge_problems(entry: RegistryEntry) -> Iterator[str]:
    """The badges beside the report that do not follow from it."""
    for tier in Tier:
        for name, text in badge_files(make_badge(entry.report, tier), REPORT_FILE).items():
            path = entry.folder / name
            if path.exists() and path.read_text(encoding="utf-8") != text:
                yield f"{name} does not follow from the report"
