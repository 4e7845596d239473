"""The entries of a registry, read from its folders: those of coordinators, and those of clients in `clients`.

coordinators/IMPLEMENTATION/about.toml            what it is, and its maintainers' answers to findings
coordinators/IMPLEMENTATION/VERSION/report.json   the report of a whole run
coordinators/IMPLEMENTATION/VERSION/profile.toml  the profile of the run, if it had one
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost.conformance.reports.json_report import ReportError, from_json
from fencepost.conformance.results import Report
from fencepost.model.errors import FencepostError

REPORT_FILE, PROFILE_FILE, ABOUT_FILE = "report.json", "profile.toml", "about.toml"
TEXT_KEYS = frozenset({"name", "url", "language", "license", "contact", "notes"})
REQUIRED_KEYS = frozenset({"name", "language", "license"})


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
