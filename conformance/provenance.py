"""Where a report comes from: the kit, the options of the run, the profile, the machine and the time."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fencepost import __version__
from fencepost.model.catalogue.specification import Specification


@dataclass(frozen=True, slots=True)
class Kit:
    """The kit that made a report: its version, how many `requirements` its catalogue has, and the SHA-256 of their ids,
    levels, sentences, sources, needs and releases."""

    version: str
    requirements: int
    catalogue: str


def describe_kit(specification: Specification) -> Kit:
    """This kit, with the requirements of a specification."""
    rows = [
        [each.id, each.level, each.title, each.sentence, each.source, each.needs, str(each.since or "")]
        for each in specification.requirements.values()
    ]
    text = json.dumps(rows, separators=(",", ":"))
    return Kit(__version__, len(rows), hashlib.sha256(text.encode()).hexdigest())


class NamedBy(StrEnum):
    """Who says what the target is."""

    PROFILE = "profile"
    TARGET = "target"
    NOBODY = "nobody"
    """It is known by its address."""


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """The options of a run as they are in `Plan`, and the `command` line that they make."""

    command: tuple[str, ...]
    only: tuple[str, ...]
    exclude: tuple[str, ...]
    smoke: bool
    slow: bool
    intrusive: bool
    seed: int
    schedules: int
    tours: int
    max_failures: int | None
    seconds: float | None
    shrink_seconds: float | None


@dataclass(frozen=True, slots=True)
class ProfileRecord:
    """A profile: the deviations that it declares with their reasons, the capabilities that it offers, the settings that
    it states, and whether these override what the target says."""

    known: Mapping[str, str]
    offers: tuple[str, ...]
    settings: Mapping[str, int]
    override: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the kit ran: the version of Python, the operating system, the processors, and the job of continuous
    integration with the commit that it tests ("" for none)."""

    python: str
    os: str
    cpus: int
    ci: str
    commit: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a report comes from. `started` is a time in UTC such as 2026-01-31T12:00:00Z. The plan is there if a target
    was asked, the profile if one was given; `about` is what it says of the target."""

    started: str
    machine: Machine
    plan: PlanRecord | None = None
    profile: ProfileRecord | None = None
    named_by: NamedBy = NamedBy.NOBODY
    about: Mapping[str, str] = field(default_factory=dict)
