"""From tests to test cases: the decorator `conformance`, and the requirements and batches that it stands for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

import pytest

from fencepost.conformance.run.schedule import BATCH_SIZE
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.subject import select_requirements
from fencepost.conformance.testing.case import CaseId
from fencepost.conformance.testing.options import PluginOptions, read_options
from fencepost.model.catalogue.selection import UnknownRequirement, matching_ids

F = TypeVar("F", bound=Callable[..., Any])
CASE = "fencepost_case"
MARKER = "fencepost_conformance"
SCHEDULES = "fencepost_schedules"


@dataclass(frozen=True, slots=True)
class CaseChoice:
    """What a test asks for: patterns of requirements (none: all), those that it leaves out, and declared deviations
    with their reasons."""

    patterns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    known: Mapping[str, str] = field(default_factory=dict)


@overload
def conformance(test: F, /) -> F: ...


@overload
def conformance(
    *patterns: str, exclude: Sequence[str] = (), known: Mapping[str, str] | None = None
) -> Callable[[F], F]: ...


def conformance(*patterns: Any, exclude: Sequence[str] = (), known: Mapping[str, str] | None = None) -> Any:
    """Turn a test that takes `fencepost_case` into one test case for each requirement.

        @conformance
        def test_group_protocol(fencepost_case):
            fencepost_case.check()

    `patterns` such as "JOIN-*" choose requirements, all by default, and `exclude` leaves some out. `known` declares
    deviations by requirement, with reasons: such a case is expected to fail, and one that passes is a failure.
    """
    if len(patterns) == 1 and callable(patterns[0]):
        return conformance()(patterns[0])
    choice = CaseChoice(tuple(patterns), tuple(exclude), dict(known or {}))
    return getattr(pytest.mark, MARKER)(choice)


def parametrize_cases(metafunc: pytest.Metafunc) -> None:
    """Make the test cases of a test. What it asks for in vain is an error of its collection."""
    choice = choice_of(metafunc.definition)
    if choice is None:
        raise pytest.Collector.CollectError(
            f"{metafunc.function.__name__}: takes fencepost_case; put @fencepost.testing.conformance on it"
        )
    try:
        cases = list(case_ids(choice, metafunc.definition, read_options(metafunc.config)))
    except (UnknownRequirement, pytest.UsageError) as error:
        raise pytest.Collector.CollectError(f"{metafunc.function.__name__}: {error}") from None
    marked = [pytest.param(case, id=str(case), marks=pytest.mark.fencepost(str(case))) for case in cases]
    metafunc.parametrize(CASE, marked, indirect=True)


def choice_of(node: pytest.Item) -> CaseChoice | None:
    """What a test asks for; None if it is not marked."""
    marker = node.get_closest_marker(MARKER)
    return marker.args[0] if marker is not None else None


def case_ids(choice: CaseChoice, node: pytest.Item, options: PluginOptions) -> Iterator[CaseId]:
    """The test cases of a test: its requirements, then its batches of random schedules. Raises `UnknownRequirement`."""
    matching_ids(DEFAULT_SPECIFICATION.requirements.values(), tuple(choice.known))
    wanted = {each.id for each in select_requirements(options.only)}
    for requirement in select_requirements(choice.patterns, choice.exclude):
        if requirement.id in wanted:
            yield CaseId(requirement.id)
    marker = node.get_closest_marker(SCHEDULES)
    count, seed = read_schedules(*marker.args, **marker.kwargs) if marker is not None else (0, options.seed)
    count = options.schedules or count
    for batch, begin in enumerate(range(0, count, BATCH_SIZE)):
        yield CaseId(batch=batch, size=min(BATCH_SIZE, count - begin), seed=options.seed or seed)


def read_schedules(n: int, seed: int = 0) -> tuple[int, int]:
    """The arguments of the marker `fencepost_schedules`."""
    return n, seed
