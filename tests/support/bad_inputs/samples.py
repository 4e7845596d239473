"""Good inputs, of which bad ones are made."""

import gzip
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fencepost.conformance.reports.json_report import to_json
from fencepost.conformance.reports.report import to_html
from fencepost.model.settings import Settings
from fencepost.traces.events import Header, Order
from fencepost.traces.files.jsonl import encode_header
from tests.support.sample_reports import VIOLATED

DATA = Path(__file__).parents[2] / "traces" / "data"
HEADER = Header("here", Order.INTERVALS, "wall", Settings(), 1_000)


def _event(sequence: int, kind: str, api: str, body: dict[str, Any], of: int | None = None) -> dict[str, Any]:
    event = {
        "sequence": sequence,
        "time": sequence,
        "connection": 1,
        "member": "A",
        "kind": kind,
        "api": api,
        "version": 4,
        "body": body,
    }
    return event if of is None else {**event, "of": of}


BEAT = {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}
EVENTS = (
    _event(0, "request", "Heartbeat", BEAT),
    _event(1, "response", "Heartbeat", {"throttle_time_ms": 0, "error_code": 25}, 0),
    _event(2, "internal", "check", {"requirement": "HB-02", "fields": []}),
    _event(3, "request", "Heartbeat", BEAT),
    _event(4, "response", "Heartbeat", {"throttle_time_ms": 0, "error_code": 25}, 3),
)
"""Heartbeats of a group that does not exist, and a check."""


@dataclass(frozen=True)
class Samples:
    """A good input of each kind."""

    @cached_property
    def header(self) -> dict[str, Any]:
        """The header of a trace."""
        header: dict[str, Any] = json.loads(encode_header(HEADER))
        return header

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The events of a trace."""
        events: list[dict[str, Any]] = json.loads(json.dumps(EVENTS))
        events[2]["of"] = 1
        return events

    @cached_property
    def trace(self) -> bytes:
        """A trace that can be judged and replayed."""
        return join_lines(self.header, *self.events)

    @cached_property
    def trace_gz(self) -> bytes:
        """The trace, compressed."""
        return gzip.compress(self.trace, mtime=0)

    @cached_property
    def report(self) -> dict[str, Any]:
        """The JSON report of a run with a violation."""
        report: dict[str, Any] = json.loads(to_json(VIOLATED))
        return report

    @cached_property
    def page(self) -> str:
        """The page of the report."""
        return to_html(VIOLATED)

    @cached_property
    def log(self) -> bytes:
        """The log of a broker."""
        return (DATA / "kafka-4.log").read_bytes()

    @cached_property
    def capture(self) -> bytes:
        """A packet capture."""
        return (DATA / "kafka.pcap").read_bytes()


def join_lines(*lines: object) -> bytes:
    """Lines of JSON."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


SAMPLES = Samples()
