"""A requirement explained: what it asks for, where that is written, and how it is tested."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fencepost.conformance.capabilities import REMEDIES
from fencepost.conformance.profile import DERIVED_CAPABILITIES
from fencepost.conformance.protocols.registry import DEFAULT_PROTOCOL
from fencepost.conformance.reports.layout import label_once, wrapped_lines
from fencepost.model.catalogue.requirement import CAPABILITIES, Requirement, Verifiability
from fencepost.model.catalogue.specification import Hole, Specification, SpecifiedDifference

_TESTED = {
    Verifiability.CHECKED: "by scenarios of its own, and wherever other schedules come by",
    Verifiability.RESTART: "by scenarios that kill the target and start it again",
    Verifiability.INCIDENTAL: "wherever a schedule comes by",
}


def explain_requirement(requirement: Requirement, example: Sequence[str] = ()) -> str:
    """The explanation of a requirement, with the lines of a schedule that tests it; ends in a newline."""
    return render_sections(requirement, (*_coordinator_sections(requirement), ("example", example)))


def explain_client_requirement(
    requirement: Requirement, specification: Specification, needs: Mapping[str, str], scenarios: Iterable[str]
) -> str:
    """The explanation of a client's requirement, with the names of its scenarios; ends in a newline."""
    id = requirement.id
    rules = (f"{name}: {rule.guard}" for name, rule in specification.rules.items() if id in rule.requirements)
    sections = (
        *_common_sections(requirement),
        ("needs", (needs[name] for name in requirement.needs)),
        ("rules", rules),
        ("scenarios", scenarios),
    )
    return render_sections(requirement, sections)


def explain_read_requirement(requirement: Requirement, specification: Specification, holes: Iterable[Hole]) -> str:
    """The explanation of a requirement that was read from a text, with the holes that break it; ends in a newline."""
    id = requirement.id
    rules = (f"{name}: {rule.guard}" for name, rule in specification.rules.items() if id in rule.requirements)
    sections = (
        ("requirement", (requirement.sentence,)),
        ("source", (requirement.source,)),
        ("rules", rules),
        ("holes", (f"{hole.id} {hole.title}. {hole.sentence} Repair: {hole.repair}" for hole in holes)),
    )
    return render_sections(requirement, sections)


def render_sections(requirement: Requirement, sections: Iterable[tuple[str, Iterable[str]]]) -> str:
    """A requirement with labelled texts; ends in a newline."""
    lines = [f"{requirement.id} {requirement.level}: {requirement.title}"]
    for name, texts in sections:
        for label, text in zip(label_once(name), texts, strict=False):
            lines += wrapped_lines(label, text)
    return "\n".join(lines) + "\n"


def _common_sections(requirement: Requirement) -> Iterator[tuple[str, Iterable[str]]]:
    yield "requirement", (requirement.sentence,)
    yield "source", (requirement.source,)
    yield "tier", (str(requirement.tier),)
    untestable = requirement.testability is Verifiability.UNTESTABLE
    yield "tested", (f"not at all: {requirement.why}" if untestable else _TESTED[requirement.testability],)


def _coordinator_sections(requirement: Requirement) -> Iterator[tuple[str, Iterable[str]]]:
    id, specification = requirement.id, DEFAULT_PROTOCOL.specification
    yield from _common_sections(requirement)
    yield "needs", (f"{CAPABILITIES[name]}; {_told_by(name)}" for name in requirement.needs)
    prerequisites = specification.prerequisites.get(id, ())
    yield "follows from", (", ".join(prerequisites),) if prerequisites else ()
    yield (
        "differences",
        (describe_difference(each) for each in specification.differences.values() if each.requirement == id),
    )
    yield "rules", (f"{name}: {rule.guard}" for name, rule in specification.rules.items() if id in rule.requirements)
    yield "scenarios", (scenario.name for scenario in DEFAULT_PROTOCOL.scenarios if id in scenario.requirements)


def describe_difference(difference: SpecifiedDifference) -> str:
    """What either reference coordinator does."""
    sides = [f"{side}: {getattr(difference, side)}" for side in ("older", "newer") if hasattr(difference, side)]
    return f"{difference.id}, Apache Kafka's two coordinators: {'; '.join(sides)}"


def _told_by(capability: str) -> str:
    """What makes the kit test requirements that need this capability."""
    if capability in DERIVED_CAPABILITIES:
        return f"follows {DERIVED_CAPABILITIES[capability]}: {REMEDIES[capability]}"
    return f'the profile says so: [capabilities] offers = ["{capability}"], where it does not show by itself'
