"""A requirement explained: what it asks for, where that is written, and how it is tested."""

from collections.abc import Iterable, Mapping, Sequence

from fencepost.conformance.capabilities import REMEDIES
from fencepost.conformance.profile import DERIVED_CAPABILITIES
from fencepost.conformance.reports.document import Document, Pairs, Part
from fencepost.conformance.reports.report import source_rows
from fencepost.conformance.reports.text import render_text
from fencepost.model.catalogue.requirement import CAPABILITIES, Requirement, Verifiability
from fencepost.model.catalogue.specification import Hole, Specification, SpecifiedDifference

TESTED = {
    Verifiability.CHECKED: "by scenarios of its own, and wherever other schedules come by",
    Verifiability.RESTART: "by scenarios that kill the target and start it again",
    Verifiability.INCIDENTAL: "wherever a schedule comes by",
}


def explain_requirement(
    requirement: Requirement,
    specification: Specification,
    needs: Mapping[str, str],
    scenarios: Iterable[str],
    holes: Iterable[Hole] = (),
    example: Sequence[str] = (),
    *,
    width: int | None = None,
) -> str:
    """The explanation of a requirement of a specification, for a terminal of this width; ends in a newline.

    `needs` says in words what each capability is, `scenarios` are those that test it, `holes` those of the text that
    break it, and `example` has the lines of a schedule that tests it.
    """
    id = requirement.id
    untestable = requirement.testability is Verifiability.UNTESTABLE
    prerequisites = specification.prerequisites.get(id, ())
    differences = (each for each in specification.differences.values() if each.requirement == id)
    rows = (
        ("requirement", (requirement.sentence,)),
        *source_rows(specification.links_of(id)),
        ("tier", (str(requirement.tier),)),
        ("tested", (f"not at all: {requirement.why}" if untestable else TESTED[requirement.testability],)),
        ("needs", tuple(needs[name] for name in requirement.needs)),
        ("follows from", (", ".join(prerequisites),) if prerequisites else ()),
        ("differences", tuple(map(describe_difference, differences))),
        (
            "rules",
            tuple(f"{name}: {rule.guard}" for name, rule in specification.rules.items() if id in rule.requirements),
        ),
        ("scenarios", tuple(scenarios)),
        ("holes", tuple(f"{hole.id} {hole.title}. {hole.sentence} Repair: {hole.repair}" for hole in holes)),
        ("example", tuple(example)),
    )
    part = Part(f"{id} {requirement.level}: {requirement.title}", (Pairs(rows),))
    return render_text(Document("", (part,)), width=width)


def describe_difference(difference: SpecifiedDifference) -> str:
    """What either reference coordinator does, or a release before a change and one since."""
    since = getattr(difference, "since", "")
    who = f"Apache Kafka before and since {since}" if since else "Apache Kafka's two coordinators"
    sides = [f"{side}: {getattr(difference, side)}" for side in ("older", "newer") if hasattr(difference, side)]
    return f"{difference.id}, {who}: {'; '.join(sides)}"


def describe_capabilities() -> dict[str, str]:
    """Each capability of a coordinator in words, with what makes the kit test the requirements that need it."""
    return {name: f"{sentence}; {_told_by(name)}" for name, sentence in CAPABILITIES.items()}


def _told_by(capability: str) -> str:
    if capability in DERIVED_CAPABILITIES:
        return f"follows {DERIVED_CAPABILITIES[capability]}: {REMEDIES[capability]}"
    return f'the profile says so: [capabilities] offers = ["{capability}"], where it does not show by itself'
