"""The report as JUnit XML, for continuous integration: a suite per family, a test case per requirement."""

import re
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree

from fencepost.conformance.reports.words import describe_ending
from fencepost.conformance.results import Failure, Report, RequirementResult, TargetFacts, Verdict, describe_kit
from fencepost.model.catalogue.requirement import Requirement

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SKIPPED = (Verdict.KNOWN, Verdict.UNSUPPORTED, Verdict.NOT_OBSERVED)


def to_junit(report: Report) -> str:
    """The report as an XML document. A violation is a failure, an undecided requirement an error, and one that
    was not judged is skipped; a run that was cut short is one more error."""
    root = ElementTree.Element("testsuites", name=_replace_illegal(f"fencepost {report.target['name']}"))
    if report.provenance is not None:
        root.set("timestamp", report.provenance.started)
    _add_properties(root, describe_report(report) | (describe_facts(report.facts) if report.facts is not None else {}))
    for part in (report, report.members):
        if part is not None:
            _add_families(root, part)
    if report.unclassified:
        _add_unclassified(root, report.unclassified)
    if report.cut_short:
        ended = report.ended
        told = ("cut-short", "the run was cut short") if ended is None else (str(ended.kind), describe_ending(ended))
        _add_error(root, "the run is complete", *told, ended.detail if ended is not None else "")
    for finding in report.idle_findings:
        _add_error(root, "the target is idle when nobody asks it", "idle", finding)
    _set_counts(root, root.findall("testsuite"))
    root.set("time", f"{report.seconds:.3f}")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_families(root: ElementTree.Element, report: Report) -> None:
    """Add a suite for each family of requirements."""
    requirements = report.specification.requirements
    families: dict[str, list[RequirementResult]] = {}
    for result in report.results:
        families.setdefault(requirements[result.id].family, []).append(result)
    for family, results in families.items():
        suite = ElementTree.SubElement(root, "testsuite", name=family)
        for result in results:
            _add_case(suite, requirements[result.id], result)
        _set_counts(suite, [suite])


def describe_report(report: Report) -> dict[str, str]:
    """The kit, the target and the run."""
    kit = report.kit or describe_kit(report.specification)
    return {
        "kit.version": kit.version,
        "kit.catalogue": kit.catalogue,
        **{f"target.{name}": value for name, value in report.target.items()},
        "scope": str(report.scope),
        "seed": str(report.seed),
    }


def describe_facts(facts: TargetFacts) -> dict[str, str]:
    """What was known about the target."""
    values = {
        f"setting.{name}": f"{fact.value} ({fact.origin})" if fact.value is not None else fact.origin
        for name, fact in facts.settings.items()
    }
    values |= {f"api.{name}": f"{low}-{high}" for name, (low, high) in facts.apis.items()}
    values |= dict.fromkeys((f"capability.{name}" for name in facts.capabilities), "on")
    values |= {f"capability.{name}": f"off: {remedy}" for name, remedy in facts.off.items()}
    return values | {f"remark.{number}": remark for number, remark in enumerate(facts.remarks, 1)}


def _add_properties(element: ElementTree.Element, values: Mapping[str, str]) -> None:
    properties = ElementTree.SubElement(element, "properties")
    for name, value in values.items():
        ElementTree.SubElement(properties, "property", name=_replace_illegal(name), value=_replace_illegal(value))


def _add_case(suite: ElementTree.Element, requirement: Requirement, result: RequirementResult) -> None:
    name = f"{result.id} {requirement.title}"
    case = ElementTree.SubElement(suite, "testcase", classname=f"fencepost.{requirement.family}", name=name)
    words = {"requirement": requirement.id, "tier": str(requirement.tier), "source": requirement.source}
    _add_properties(case, words)
    if result.verdict is Verdict.FAIL:
        failures = result.failures_by_length()
        title = failures[0].title if failures else ""
        message = _replace_illegal(f"{title}. {requirement.sentence}" if title else requirement.sentence)
        element = ElementTree.SubElement(case, "failure", type=str(requirement.level), message=message)
        lines = [f"source: {requirement.source}"]
        for failure in failures:
            lines += ["", *_failure_lines(failure)]
        element.text = _replace_illegal("\n".join(lines))
    elif result.verdict is Verdict.INCONCLUSIVE:
        ElementTree.SubElement(case, "error", type=str(result.verdict), message=_replace_illegal(result.comment))
    elif result.verdict in _SKIPPED:
        message = f"{result.verdict}: {result.note}" if result.note else str(result.verdict)
        ElementTree.SubElement(case, "skipped", message=_replace_illegal(message))


def _failure_lines(failure: Failure) -> Iterator[str]:
    yield from _difference_lines(failure)
    for label, text in (("model", failure.describe_model()), ("state", failure.state)):
        if text:
            yield f"{label}: {text}"
    yield from failure.numbered_steps()
    if failure.replay:
        yield f"replay: {failure.replay}"


def _difference_lines(failure: Failure) -> Iterator[str]:
    if failure.title:
        yield failure.title
    for difference in failure.differences:
        yield f"{difference.label}: expected {difference.expected}, observed {difference.observed}"
    if not failure.differences:
        yield from (f"expected: {allowed}" for allowed in failure.allowed)
        yield f"observed: {failure.observed}"


def _add_unclassified(root: ElementTree.Element, failures: Sequence[Failure]) -> None:
    """A failed case for each violation that no requirement speaks of."""
    suite = ElementTree.SubElement(root, "testsuite", name="unclassified")
    for number, failure in enumerate(failures, 1):
        case = ElementTree.SubElement(suite, "testcase", classname="fencepost.unclassified", name=f"violation {number}")
        message = _replace_illegal(failure.title or failure.observed)
        element = ElementTree.SubElement(case, "failure", type="unclassified", message=message)
        element.text = _replace_illegal("\n".join(_failure_lines(failure)))
    _set_counts(suite, [suite])


def _add_error(root: ElementTree.Element, name: str, kind: str, message: str, detail: str = "") -> None:
    """Add an error of the run as a whole."""
    suite = ElementTree.SubElement(root, "testsuite", name="run")
    case = ElementTree.SubElement(suite, "testcase", classname="fencepost.run", name=name)
    error = ElementTree.SubElement(case, "error", type=kind, message=_replace_illegal(message))
    if detail:
        error.text = _replace_illegal(detail)
    _set_counts(suite, [suite])


def _set_counts(element: ElementTree.Element, suites: list[ElementTree.Element]) -> None:
    """Set on `element` how many cases, failures, errors and skips `suites` hold."""
    for attribute, path in (("tests", "."), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(len(suite.findall(f"testcase/{path}")) for suite in suites)))


def _replace_illegal(text: str) -> str:
    """`text` without the characters that XML 1.0 cannot carry, not even escaped."""
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)
