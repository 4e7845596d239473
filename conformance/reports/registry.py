"""A registry of committed reports: its entries, their checks, and their runs made again.

It orders by name and ranks nobody. Entries of coordinators are read from its folders as follows, and those of clients
and of other protocols from folders beside them:

coordinators/IMPLEMENTATION/about.toml            what it is, and its maintainers' answers to findings
coordinators/IMPLEMENTATION/VERSION/report.json   the report of a whole run
coordinators/IMPLEMENTATION/VERSION/profile.toml  the profile of the run, if it had one
"""

import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.adapters.client.cluster import CLIENT_LABEL
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import CLIENT_SECTIONS, SECTIONS, ProfileError, load_profile
from fencepost.conformance.reports.badge import badge_files, is_partial, make_badge, start_of
from fencepost.conformance.reports.json_report import ReportError, from_json
from fencepost.conformance.reports.sequence import read_excerpt
from fencepost.conformance.results import Failure, NamedBy, Report, Verdict
from fencepost.conformance.run.provenance import record_profile
from fencepost.conformance.run.registry import is_bundled
from fencepost.conformance.specification import CLIENT_SPECIFICATION
from fencepost.model.catalogue.requirement import Tier
from fencepost.model.errors import FencepostError
from fencepost.traces.client_judge.judge import FollowClient, is_client_trace, judge_client
from fencepost.traces.judge.judge import judge
from fencepost.traces.verdict import violations_in

REPORT_FILE, PROFILE_FILE, ABOUT_FILE = "report.json", "profile.toml", "about.toml"
TEXT_KEYS = frozenset({"name", "url", "language", "license", "contact", "notes"})
REQUIRED_KEYS = frozenset({"name", "language", "license"})
MAX_REPORT_BYTES = 2_000_000
DECIDED = (Verdict.PASS, Verdict.FAIL, Verdict.KNOWN)
"""The verdicts that another run on the same target has to give again."""


class RegistryError(FencepostError, ValueError):
    """A registry or an entry cannot be read; the message is one line: file, problem."""


@dataclass(frozen=True, slots=True)
class About:
    """An implementation and its maintainers.

    `official` says that its maintainers sent the reports; `answers` are theirs to findings, by the ids of requirements.
    """

    name: str
    language: str
    license: str
    url: str = ""
    contact: str = ""
    notes: str = ""
    official: bool = False
    answers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """A report on one version of an implementation, in its folder."""

    folder: Path
    about: About
    report: Report

    @property
    def implementation(self) -> str:
        """The name of the implementation's folder."""
        return self.folder.parent.name

    @property
    def version(self) -> str:
        """The name of the version's folder."""
        return self.folder.name

    @property
    def path(self) -> str:
        """The path of its page on the site."""
        return f"{self.shelf}/{self.implementation}/{self.version}"

    @property
    def shelf(self) -> str:
        """The folder for all implementations of its kind."""
        return self.report.specification.shelf


def find_entries(root: Path) -> list[Path]:
    """The folders of the entries below a registry, an implementation or an entry, by name. Raises `RegistryError` if
    there are none."""
    if (root / REPORT_FILE).is_file():
        return [root]
    found = sorted(path.parent for path in root.rglob(REPORT_FILE))
    if not found:
        raise RegistryError(f"{root}: no {REPORT_FILE} in it; it has one in each coordinators/NAME/VERSION")
    return found


def read_entry(folder: Path) -> RegistryEntry:
    """The entry in a folder. Raises `RegistryError`."""
    file = folder / REPORT_FILE
    try:
        report = from_json(file.read_text(encoding="utf-8"))
    except (ReportError, OSError, UnicodeDecodeError) as error:
        raise RegistryError(f"{file}: {error}") from None
    return RegistryEntry(folder, read_about(folder.parent / ABOUT_FILE), report)


def read_entries(root: Path) -> Iterator[RegistryEntry]:
    """The entries of a registry, by name. Raises `RegistryError`."""
    yield from map(read_entry, find_entries(root))


def read_about(path: Path) -> About:
    """What an implementation is. Raises `RegistryError`."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RegistryError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    problem = about_problem(document)
    if problem:
        raise RegistryError(f"{path}: {problem}")
    return About(**document)


def about_problem(document: Mapping[str, Any]) -> str:
    """What is wrong with a description of an implementation; "" if nothing is."""
    known = TEXT_KEYS | {"official", "answers"}
    unknown, missing = sorted(set(document) - known), sorted(REQUIRED_KEYS - set(document))
    if unknown:
        return f"unknown key {unknown[0]!r}; there are {', '.join(sorted(known))}"
    if missing:
        return f"{missing[0]} is missing"
    for key in TEXT_KEYS & set(document):
        if not isinstance(document[key], str):
            return f"{key} is not a text"
    if not isinstance(document.get("official", False), bool):
        return "official is neither true nor false"
    answers = document.get("answers", {})
    if not isinstance(answers, dict) or not all(isinstance(each, str) for each in answers.values()):
        return "answers is not a table of texts"
    return ""


# --- checks -------------------------------------------------------------------------------------------------------


def find_problems(entry: RegistryEntry, follow: FollowClient) -> Iterator[str]:
    """What is wrong with an entry, a line each: its report is of a whole run, holds together, and its failures show
    when their traces are judged again, those of clients by `follow`."""
    yield from (f"{entry.folder / REPORT_FILE}: {problem}" for problem in report_problems(entry))
    yield from (f"{entry.folder}: {problem}" for problem in place_problems(entry))
    yield from (f"{entry.folder / PROFILE_FILE}: {problem}" for problem in profile_problems(entry))
    yield from (f"{entry.folder / REPORT_FILE}: {problem}" for problem in failure_problems(entry, follow))
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


def failure_problems(entry: RegistryEntry, follow: FollowClient) -> Iterator[str]:
    """The violations that do not show when their traces are judged again."""
    for result in entry.report.results:
        traced = [failure for failure in result.failures if failure.excerpt]  # others cannot be judged
        is_violated = result.verdict in (Verdict.FAIL, Verdict.KNOWN)
        if is_violated and traced and not any(violates(failure, result.id, follow) for failure in traced):
            yield f"{result.id}: judged again, no trace in the report violates it"


def violates(failure: Failure, requirement: str, follow: FollowClient) -> bool:
    """Whether the trace of a failure violates a requirement."""
    excerpt = read_excerpt(failure)
    if excerpt is None:
        return False
    header, events = excerpt
    if is_client_trace(header):
        return requirement in judge_client(header, events, CLIENT_LABEL, follow).violated
    return requirement in {violation.requirement for violation in violations_in(judge(header, events))}


def badge_problems(entry: RegistryEntry) -> Iterator[str]:
    """The badges beside the report that do not follow from it."""
    for tier in Tier:
        for name, text in badge_files(make_badge(entry.report, tier), REPORT_FILE).items():
            path = entry.folder / name
            if path.exists() and path.read_text(encoding="utf-8") != text:
                yield f"{name} does not follow from the report"


# --- runs made again ----------------------------------------------------------------------------------------------


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
