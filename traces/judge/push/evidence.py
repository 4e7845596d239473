"""What a trace shows of the requirements of push: those that hold, and the wording of those that do not."""

from fencepost.model.push.rules import PUSH
from fencepost.traces.events import Event
from fencepost.traces.verdict import CheckResult, CheckStatus, FieldDifference, Violation


class PushEvidence:
    """Collects the requirements that a trace puts to the test, with the event that first shows each to hold."""

    def __init__(self) -> None:
        self.shown: dict[str, int] = {}
        self.broken: set[str] = set()

    def add(self, event: Event, *requirements: str) -> None:
        """An event shows that these hold."""
        for each in requirements:
            self.shown.setdefault(each, event.sequence)

    def check_results(self) -> tuple[CheckResult, ...]:
        """A passed check for each requirement that was shown and not broken."""
        shown = sorted(self.shown.items())
        return tuple(CheckResult(id, at, CheckStatus.PASS) for id, at in shown if id not in self.broken)

    def violation(
        self, event: Event, group: str, requirement: str, field: str, expected: str, observed: str, rule: str = ""
    ) -> Violation:
        """The violation of a requirement ("" for one that no requirement speaks of) that an event shows."""
        self.broken.add(requirement)
        guard = PUSH.rules[rule].guard if rule in PUSH.rules else ""
        return Violation(
            event.sequence,
            group,
            event.api,
            (field,),
            observed,
            (expected,),
            rule,
            guard,
            (requirement,) if requirement else (),
            kind=f"{event.api} {field} {requirement}",
            differences=(FieldDifference(field, expected, observed),),
        )
