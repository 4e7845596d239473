"""The report as JUnit XML, for continuous integration: a suite per family, a test case per requirement."""

import re
from xml.etree import ElementTree

from fencepost.conformance.results import Report, RequirementResult, TargetFacts, Verdict
from fencepost.model.catalogue.classic import CATALOGUE

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SKIPPED = (Verdict.KNOWN, Verdict.UNSUPPORTED, Verdict.NOT_OBSERVED)


def to_junit(report: Report) -> str:
    """The report as an XML document. A violation is a failure, an undecided requirement an error, and one that
    was not judged is skipped; a run that was cut short is one more error."""
    root = ElementTree.Element("testsuites", name=_replace_illegal(f"fencepost {report.target['name']}"))
    if report.facts is not None:
        _add_properties(root, report.facts)
    families: dict[str, list[RequirementResult]] = {}
    for result in report.results:
        families.setdefault(CATALOGUE[result.id].family, []).append(result)
    for family, results in families.items():
        suite = ElementTree.SubElement(root, "testsuite", name=family)
        for result in results:
            _add_case(suite, family, result)
        _set_counts(suite, [suite])
    if report.cut_short:
        _add_error(root, "the run is complete", "cut-short", "the run was cut short")
    for finding in report.idle_findings:
        _add_error(root, "the target is idle when nobody asks it", "idle", finding)
    _set_counts(root, root.findall("testsuite"))
    root.set("time", f"{report.seconds:.3f}")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_properties(root: ElementTree.Element, facts: TargetFacts) -> None:
    """What was known about the target."""
    properties = ElementTree.SubElement(root, "properties")
    values = {
        f"setting.{name}": f"{fact.value} ({fact.origin})" if fact.value is not None else fact.origin
        for name, fact in facts.settings.items()
    }
    values |= {f"api.{name}": f"{low}-{high}" for name, (low, high) in facts.apis.items()}
    values |= dict.fromkeys((f"capability.{name}" for name in facts.capabilities), "on")
    values |= {f"capability.{name}": f"off: {remedy}" for name, remedy in facts.off.items()}
    values |= {f"remark.{number}": remark for number, remark in enumerate(facts.remarks, 1)}
    for name, value in values.items():
        ElementTree.SubElement(properties, "property", name=name, value=_replace_illegal(value))


def _add_case(suite: ElementTree.Element, family: str, result: RequirementResult) -> None:
    requirement = CATALOGUE[result.id]
    name = f"{result.id} {requirement.title}"
    case = ElementTree.SubElement(suite, "testcase", classname=f"fencepost.{family}", name=name)
    if result.verdict is Verdict.FAIL:
        element = ElementTree.SubElement(case, "failure", type=str(requirement.level), message=requirement.sentence)
        element.text = _replace_illegal(_failure_text(result))
    elif result.verdict is Verdict.INCONCLUSIVE:
        ElementTree.SubElement(case, "error", type=str(result.verdict), message=_replace_illegal(result.note))
    elif result.verdict in _SKIPPED:
        message = f"{result.verdict}: {result.note}" if result.note else str(result.verdict)
        ElementTree.SubElement(case, "skipped", message=_replace_illegal(message))


def _failure_text(result: RequirementResult) -> str:
    lines = [f"source: {CATALOGUE[result.id].source}"]
    for failure in result.failures_by_length():
        lines += ["", f"observed: {failure.observed}"]
        lines += (f"allowed: {allowed}" for allowed in failure.allowed)
        if failure.guard:
            lines.append(f"false guard: {failure.guard}")
        lines += (f"{n}. {step}" for n, step in enumerate(failure.schedule, 1))
        if failure.replay:
            lines.append(f"replay: {failure.replay}")
    return "\n".join(lines)


def _add_error(root: ElementTree.Element, name: str, kind: str, message: str) -> None:
    """Add an error of the run as a whole."""
    suite = ElementTree.SubElement(root, "testsuite", name="run")
    case = ElementTree.SubElement(suite, "testcase", classname="fencepost.run", name=name)
    ElementTree.SubElement(case, "error", type=kind, message=_replace_illegal(message))
    _set_counts(suite, [suite])


def _set_counts(element: ElementTree.Element, suites: list[ElementTree.Element]) -> None:
    """Set on `element` how many cases, failures, errors and skips `suites` hold."""
    for attribute, path in (("tests", "."), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(len(suite.findall(f"testcase/{path}")) for suite in suites)))


def _replace_illegal(text: str) -> str:
    """`text` without the characters that XML 1.0 cannot carry, not even escaped."""
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)
