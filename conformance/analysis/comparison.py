"""Two reports on a target, an older and a newer one: what broke, what was mended, what is no longer checked."""

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost.conformance.results import Report, Verdict

CHECKED = frozenset({Verdict.PASS, Verdict.FAIL, Verdict.KNOWN})
BROKEN = frozenset({Verdict.FAIL, Verdict.KNOWN})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The requirements that only the newer report has as failed, those that only the older one has, and those that only
    the older or only the newer one checks."""

    broken: tuple[str, ...]
    mended: tuple[str, ...]
    no_longer_checked: tuple[str, ...]
    newly_checked: tuple[str, ...]

    @property
    def is_worse(self) -> bool:
        """Something is newly broken, or no longer checked."""
        return bool(self.broken or self.no_longer_checked)


def compare_reports(old: Report, new: Report) -> Comparison:
    """How a report differs from an older one. A requirement that a report does not have is not checked there."""
    before, after = verdicts_in(old), verdicts_in(new)
    ids = list(dict.fromkeys([*before, *after]))

    def chosen(one: Mapping[str, Verdict], other: Mapping[str, Verdict], group: frozenset[Verdict]) -> tuple[str, ...]:
        return tuple(id for id in ids if one.get(id) in group and other.get(id) not in group)

    broken = chosen(after, before, BROKEN)
    mended = tuple(id for id in chosen(before, after, BROKEN) if after.get(id) is Verdict.PASS)
    return Comparison(broken, mended, chosen(before, after, CHECKED), chosen(after, before, CHECKED))


def verdicts_in(report: Report) -> dict[str, Verdict]:
    """The verdicts of a report by requirement."""
    return {result.id: result.verdict for result in report.results}
