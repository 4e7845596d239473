"""Protocols by name: a toy protocol is found by the header of its traces, and by the scheme of its targets."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.conformance.analysis.trace_report import judge_files
from fencepost.conformance.cli import main
from fencepost.conformance.plan import Plan
from fencepost.conformance.run.replay import protocol_to_replay
from fencepost.conformance.run.runner import requirements_of
from fencepost.conformance.specification import all_specifications, needs_of, specification_named, specification_of
from fencepost.model.protocols import GROUP, registered_protocols
from fencepost.model.settings import Settings
from fencepost.traces.events import Event, Header, Kind, Order
from fencepost.traces.files.jsonl import MalformedLineError, decode_header, encode_header
from fencepost.traces.files.trace_files import TraceError, write_trace
from fencepost.traces.judge.groups.group_judge import GroupFindings
from fencepost.traces.judge.judge import UnknownProtocol, judge
from fencepost.traces.verdict import Violation
from tests.support.lease.protocol import LeaseProtocol

PLAIN = Header("s", Order.INTERVALS, "virtual", Settings(), 10)
LEASE = replace(PLAIN, protocol="lease", limits={"ttl": 321})


@pytest.fixture(autouse=True)
def lease_is_registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """One entry point of another distribution, and nothing else."""
    metadata = tmp_path / "lease-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: lease\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[{GROUP}]\nlease = tests.support.lease:LEASE\n")
    monkeypatch.syspath_prepend(tmp_path)
    registered_protocols.cache_clear()
    yield
    registered_protocols.cache_clear()


def exchange(error: int, token: int) -> tuple[Event, ...]:
    body = {"group": "l", "client": "a", "ttl": 100}
    response = {"error_code": error, "token": token}
    return (
        Event(0, 0, 0, "A", Kind.REQUEST, "acquire", 0, body),
        Event(1, 1, 0, "A", Kind.RESPONSE, "acquire", 0, response, 0),
    )


def write(path: Path, header: Header, events: tuple[Event, ...]) -> Path:
    write_trace(path, header, events)
    return path


def test_header_names_protocol_and_limits() -> None:
    assert decode_header(encode_header(LEASE)) == LEASE
    assert b"protocol" not in encode_header(PLAIN) and b"limits" not in encode_header(PLAIN)
    with pytest.raises(MalformedLineError, match="'ttl' in 'limits' is not an integer"):
        decode_header(encode_header(LEASE).replace(b"321", b'"321"'))


def test_trace_is_judged_by_the_protocol_that_it_names() -> None:
    assert judge(LEASE, exchange(0, 1)).violations == ()
    assert [each.requirements for each in judge(LEASE, exchange(0, 7)).violations] == [("LEASE-01",)]
    with pytest.raises(UnknownProtocol, match="protocol 'rent' is none that is judged: classic"):
        judge(replace(PLAIN, protocol="rent"), ())


def test_report_on_traces_is_about_their_protocol(tmp_path: Path) -> None:
    broken = write(tmp_path / "a.jsonl", LEASE, exchange(0, 7))
    report = judge_files([broken], lambda progress: None)
    assert [result.id for result in report.results if result.failures] == ["LEASE-01"]
    other = write(tmp_path / "b.jsonl", PLAIN, ())
    report = judge_files([broken, other], lambda progress: None)
    assert "of the protocol classic, the traces before of lease; judge them apart" in str(report.ended)
    unknown = write(tmp_path / "c.jsonl", replace(PLAIN, protocol="rent"), ())
    with pytest.raises(TraceError, match=r"c\.jsonl:1: protocol 'rent' is none"):
        judge_files([unknown], lambda progress: None)


def test_target_and_trace_are_of_one_protocol(tmp_path: Path) -> None:
    assert [each.family for each in requirements_of(Plan("lease://h:1"))] == ["LEASE"] * 3
    assert requirements_of(Plan("kafka://h:1")) == requirements_of(Plan("h:1")) == requirements_of(Plan("bundled"))
    trace = write(tmp_path / "a.jsonl", LEASE, exchange(0, 7))
    assert protocol_to_replay(trace, "lease://h:1").judged is LeaseProtocol
    with pytest.raises(TraceError, match="of the protocol lease; bundled speaks classic"):
        protocol_to_replay(trace, "bundled")


def test_command_line_takes_a_protocol_that_is_registered_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "lease://bundled", "--schedules", "20"]) == 3
    assert "20 schedules, 364 events, 7 of 7 rules seen" in capsys.readouterr().out
    assert main(["list", "LEASE-*"]) == 0
    assert "LEASE-03" in capsys.readouterr().out
    assert main(["test", "rent://bundled"]) == 2
    assert capsys.readouterr().err.startswith("fencepost: 'rent://bundled' is no target")


def test_every_requirement_has_one_specification() -> None:
    seen: dict[str, str] = {}
    for specification in all_specifications():
        assert specification_named(specification.subject) is specification
        for id, requirement in specification.requirements.items():
            assert seen.setdefault(id, specification.subject) == specification.subject
            assert specification_of(requirement) is specification
            assert needs_of(id) == requirement.needs


class LateFollower:
    """Complains of each event, and once more at the end."""

    def __init__(self) -> None:
        self.findings = GroupFindings()
        self.seen: list[Event] = []

    def complain(self, event: Event) -> Violation:
        return Violation(event.sequence, "l", event.api, (), "", (), "", "", ("LEASE-02",))

    def on_event(self, event: Event) -> Iterator[Violation]:
        self.seen.append(event)
        self.findings.rules["expire"] += 1
        yield self.complain(event)

    def finish(self) -> Iterator[Violation]:
        yield self.complain(self.seen[-1])


class FollowedLease(LeaseProtocol):
    """The lease without the search."""

    def new_follower(self) -> LateFollower:
        return LateFollower()


def test_protocol_may_follow_the_trace_by_itself() -> None:
    verdict = judge(LEASE, exchange(0, 7), protocol=FollowedLease)
    assert [each.sequence for each in verdict.violations] == [0, 1, 1]
    assert verdict.rules == {"expire": 2}
