"""What recorded traces say together, wherever they were judged."""

from collections import Counter
from collections.abc import Container, Mapping, Sequence

from fencepost.conformance.analysis.aggregation import RequirementFindings
from fencepost.model.classic.rules import RULES
from fencepost.traces.verdict import CheckStatus


def describe_target(sources: Sequence[str], implementations: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What was watched, as far as the traces agree on it; of each its source, and what it tells of the target."""
    common = Counter(item for each in implementations for item in each.items())
    agreed = {key: value for (key, value), times in common.items() if times == len(implementations)}
    name = sources[0] if len(set(sources)) == 1 else f"{len(sources)} traces"
    return {"name": name, **{key: value for key, value in agreed.items() if key != "name"}}


def count_rule_checks(
    findings: Mapping[str, RequirementFindings], rules: Mapping[str, int], violated: Container[str]
) -> None:
    """A rule that explained answers of a trace was put to the test, and so were its requirements, unless blamed."""
    for name, seen in rules.items():
        for each in RULES[name].requirements if name in RULES else ():
            if each not in violated:
                findings[each].counts[CheckStatus.PASS] += seen
