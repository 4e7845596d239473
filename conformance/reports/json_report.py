"""The report as JSON: written by `--json` and read back by later commands."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from types import NoneType
from typing import Any

from fencepost.conformance.analysis.causes import find_causes
from fencepost.conformance.results import (
    Coverage,
    Ending,
    EndKind,
    Failure,
    Report,
    RequirementResult,
    RuleCoverage,
    Scope,
    SettingFact,
    TargetFacts,
    Verdict,
)
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.model.catalogue.requirement import Requirement
from fencepost.model.catalogue.specification import Specification
from fencepost.model.errors import FencepostError
from fencepost.traces.verdict import FieldDifference

REPORT_VERSION = 2


class ReportError(FencepostError):
    """A text is not a report; the message is one clear line."""


def to_json(report: Report) -> str:
    """The report as indented JSON text that ends in a newline. Equal reports give equal texts."""
    document = {
        "fencepost": REPORT_VERSION,
        "target": dict(report.target),
        "seed": report.seed,
        "scope": str(report.scope),
        "summary": {str(verdict): count for verdict, count in report.summary().items()},
        "causes": _causes_to_json(report),
        "requirements": [
            _result_to_json(result, report.specification.requirements[result.id]) for result in report.results
        ],
        "rules": {
            name: {"seen": rule.seen, "requirements": list(rule.requirements)}
            for name, rule in sorted(report.rules.items())
        },
        "schedules": report.schedules,
        "events": report.events,
        "seconds": report.seconds,
        "cut_short": report.cut_short,
    }
    if report.unclassified:
        document["unclassified"] = [_failure_to_json(failure) for failure in report.unclassified]
    if report.coverage is not None:
        document["coverage"] = asdict(report.coverage)
    if report.undecided:
        document["undecided"] = list(report.undecided)
    if report.ended is not None:
        document["ended"] = asdict(report.ended)
    if report.idle_findings:
        document["idle_findings"] = list(report.idle_findings)
    if report.facts is not None:
        document["facts"] = asdict(report.facts)
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def from_json(text: str, specification: Specification = DEFAULT_SPECIFICATION) -> Report:
    """The report that `to_json` wrote, on requirements of the specification.

    Raises `ReportError` for anything else, and says where it is wrong.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"not JSON: {error}") from None
    version = document.get("fencepost") if isinstance(document, dict) else None
    if type(version) is not int or version != REPORT_VERSION:
        raise ReportError(f"not a Fencepost report of version {REPORT_VERSION}")
    top = _JsonObject(document, "report")
    top.take("fencepost", int)
    report = Report(
        target=_read_target(top.take("target", dict)),
        seed=top.take("seed", int),
        scope=_read_scope(top.take("scope", str)),
        results=tuple(_read_result(item, n, specification) for n, item in enumerate(top.take("requirements", list))),
        rules={name: _read_rule(rule, name) for name, rule in top.take("rules", dict).items()},
        schedules=top.take_count("schedules"),
        events=top.take_count("events"),
        seconds=top.take_seconds("seconds"),
        cut_short=top.take("cut_short", bool),
        coverage=_read_coverage(top.take("coverage", dict)) if "coverage" in document else None,
        undecided=tuple(map(str, top.take("undecided", list))) if "undecided" in document else (),
        specification=specification,
        unclassified=_read_unclassified(top.take("unclassified", list)) if "unclassified" in document else (),
        ended=_read_ending(top.take("ended", dict)) if "ended" in document else None,
        idle_findings=top.take_strings("idle_findings") if "idle_findings" in document else (),
        facts=_read_facts(top.take("facts", dict)) if "facts" in document else None,
    )
    if top.take("summary", dict) != report.summary():
        raise ReportError("report: the summary does not agree with the requirements")
    if top.take("causes", list) != _causes_to_json(report):
        raise ReportError("report: the causes do not agree with the requirements")
    top.check_empty()
    return report


def _causes_to_json(report: Report) -> list[dict[str, Any]]:
    causes = find_causes(report.results)
    return [{"title": cause.title, "requirements": list(cause.requirements)} for cause in causes]


def _read_scope(value: str) -> Scope:
    if value not in list(Scope):
        raise ReportError(f"report: unknown scope {value!r}")
    return Scope(value)


def _result_to_json(result: RequirementResult, requirement: Requirement) -> dict[str, Any]:
    return {
        "id": result.id,
        "level": str(requirement.level),
        "title": requirement.title,
        "source": requirement.source,
        "since": "" if requirement.since is None else str(requirement.since),
        "verdict": str(result.verdict),
        "note": result.note,
        "causes": list(result.causes),
        "checks": result.checks,
        "failures": [_failure_to_json(failure) for failure in result.failures],
    }


def _failure_to_json(failure: Failure) -> dict[str, Any]:
    return {
        "trace": failure.trace,
        "step": failure.step,
        "observed": failure.observed,
        "allowed": list(failure.allowed),
        "guard": failure.guard,
        "schedule": list(failure.schedule),
        "replay": failure.replay,
        "replayed": failure.replayed,
        "title": failure.title,
        "differences": [asdict(difference) for difference in failure.differences],
        "rule": failure.rule,
        "state": failure.state,
        "wrong_step": failure.wrong_step,
        "kind": failure.kind,
    }


class _JsonObject:
    """The fields of one JSON object, taken one by one; what is missing, surplus or of another type is an error."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise ReportError(f"{where}: expected an object")
        self._left: dict[str, Any] = dict(value)
        self._where = where

    def take(self, name: str, kind: type) -> Any:
        if name not in self._left:
            raise ReportError(f"{self._where}: {name!r} is missing")
        value = self._left.pop(name)
        # A bool is an int to isinstance, but not to a reader of the file.
        if type(value) is not kind:
            raise ReportError(f"{self._where}: {name!r} should be {_KIND_NAMES[kind]}")
        return value

    def take_count(self, name: str) -> int:
        value: int = self.take(name, int)
        if value < 0:
            raise ReportError(f"{self._where}: {name!r} is negative")
        return value

    def take_null(self, name: str) -> bool:
        """Whether the field is null, which takes it."""
        is_null = name in self._left and self._left[name] is None
        if is_null:
            del self._left[name]
        return is_null

    def take_seconds(self, name: str) -> float:
        kind = int if type(self._left.get(name)) is int else float
        value = float(self.take(name, kind))
        if not math.isfinite(value) or value < 0:
            raise ReportError(f"{self._where}: {name!r} is not a duration")
        return value

    def take_strings(self, name: str) -> tuple[str, ...]:
        values = self.take(name, list)
        if not all(type(value) is str for value in values):
            raise ReportError(f"{self._where}: {name!r} should hold strings")
        return tuple(values)

    def names(self) -> tuple[str, ...]:
        return tuple(self._left)

    def check_empty(self) -> None:
        if self._left:
            raise ReportError(f"{self._where}: unknown field {min(self._left)!r}")


_KIND_NAMES = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    NoneType: "null",
}


def _read_coverage(value: Mapping[str, object]) -> Coverage:
    fields = _JsonObject(value, "coverage")
    counts = _JsonObject(fields.take("transitions", dict), "coverage transitions")
    coverage = Coverage(
        schedules=fields.take_count("schedules"),
        undecided=_read_texts(fields.take("undecided", dict), "coverage undecided"),
        transitions={name: counts.take_count(name) for name in counts.names()},
        missed=_read_texts(fields.take("missed", dict), "coverage missed"),
        rules=_read_texts(fields.take("rules", dict), "coverage rules"),
    )
    fields.check_empty()
    return coverage


def _read_ending(value: Mapping[str, object]) -> Ending:
    fields = _JsonObject(value, "ended")
    kind = fields.take("kind", str)
    if kind not in list(EndKind):
        raise ReportError(f"ended: unknown kind {kind!r}")
    ending = Ending(
        kind=EndKind(kind),
        reason=fields.take("reason", str),
        seconds=fields.take_seconds("seconds"),
        during=fields.take("during", str),
        last_sign=None if fields.take_null("last_sign") else fields.take_seconds("last_sign"),
        detail=fields.take("detail", str),
    )
    fields.check_empty()
    return ending


def _read_facts(value: Mapping[str, object]) -> TargetFacts:
    fields = _JsonObject(value, "facts")
    facts = TargetFacts(
        settings={name: _read_setting(fact, name) for name, fact in fields.take("settings", dict).items()},
        apis={name: _read_versions(pair, name) for name, pair in fields.take("apis", dict).items()},
        capabilities=fields.take_strings("capabilities"),
        off=_read_texts(fields.take("off", dict), "facts off"),
        remarks=fields.take_strings("remarks"),
    )
    fields.check_empty()
    return facts


def _read_setting(value: object, name: str) -> SettingFact:
    fields = _JsonObject(value, f"setting {name!r}")
    known = isinstance(value, dict) and value.get("value") is not None
    fact = SettingFact(fields.take("value", int if known else NoneType), fields.take("origin", str))
    fields.check_empty()
    return fact


def _read_versions(value: object, api: str) -> tuple[int, int]:
    if not isinstance(value, list) or [type(each) for each in value] != [int, int]:
        raise ReportError(f"API {api!r}: its versions should be two whole numbers")
    return value[0], value[1]


def _read_texts(value: Mapping[str, object], where: str) -> dict[str, str]:
    fields = _JsonObject(value, where)
    return {name: str(fields.take(name, str)) for name in value}


def _read_target(value: Mapping[str, object]) -> dict[str, str]:
    target = _read_texts(value, "target")
    if "name" not in target:
        raise ReportError("target: 'name' is missing")
    return target


def _read_result(value: object, index: int, specification: Specification) -> RequirementResult:
    fields = _JsonObject(value, f"requirement {index + 1}")
    id = fields.take("id", str)
    if id not in specification.requirements:
        raise ReportError(f"requirement {index + 1}: there is no requirement {id!r}")
    for derived in ("level", "title", "source", "since"):  # the catalogue's; its wording may change between releases
        fields.take(derived, str)
    verdict = fields.take("verdict", str)
    if verdict not in list(Verdict):
        raise ReportError(f"{id}: unknown verdict {verdict!r}")
    failures = tuple(
        _read_failure(item, f"{id} failure {n + 1}") for n, item in enumerate(fields.take("failures", list))
    )
    result = RequirementResult(
        id,
        Verdict(verdict),
        fields.take("note", str),
        fields.take_count("checks"),
        failures,
        fields.take_strings("causes"),
    )
    fields.check_empty()
    return result


def _read_failure(value: object, where: str) -> Failure:
    fields = _JsonObject(value, where)
    failure = Failure(
        trace=fields.take("trace", str),
        step=fields.take_count("step"),
        observed=fields.take("observed", str),
        allowed=fields.take_strings("allowed"),
        guard=fields.take("guard", str),
        schedule=fields.take_strings("schedule"),
        replay=fields.take("replay", str),
        replayed=fields.take("replayed", bool),
        title=fields.take("title", str),
        differences=tuple(
            _read_difference(item, f"{where} difference {n + 1}")
            for n, item in enumerate(fields.take("differences", list))
        ),
        rule=fields.take("rule", str),
        state=fields.take("state", str),
        wrong_step=fields.take_count("wrong_step"),
        kind=fields.take("kind", str),
    )
    fields.check_empty()
    return failure


def _read_unclassified(values: list[Any]) -> tuple[Failure, ...]:
    return tuple(_read_failure(value, f"unclassified {number}") for number, value in enumerate(values, 1))


def _read_difference(value: object, where: str) -> FieldDifference:
    fields = _JsonObject(value, where)
    texts = {name: str(fields.take(name, str)) for name in ("name", "expected", "observed", "place")}
    fields.check_empty()
    return FieldDifference(**texts)


def _read_rule(value: object, name: str) -> RuleCoverage:
    fields = _JsonObject(value, f"rule {name!r}")
    rule = RuleCoverage(fields.take_count("seen"), fields.take_strings("requirements"))
    fields.check_empty()
    return rule
